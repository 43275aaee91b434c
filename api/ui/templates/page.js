"use strict";
// Reads values from charts, moves the focus by keys, and brings the newest state of the page every
// few seconds without loading the page again: what is typed, focused, unfolded and scrolled stays.
// Without this script the page has everything, too, and reloads as a whole.
(() => {
	const seconds = Number(document.body.dataset.refresh), toggle = document.getElementById("refresh");
	const key = "weir-refresh"; // "off" while paused; it holds for all pages of this browser
	const remembered = () => { try { return localStorage.getItem(key); } catch { return null; } };
	let paused = remembered() === "off";

	// read shows the values of all charts in one column; with column -1, the newest ones. The chart
	// that the reader points at is announced.
	let column = -1, chosen = null;
	const read = () => {
		for (const chart of document.querySelectorAll("figure[data-values]")) {
			const output = chart.querySelector("output"), cursor = chart.querySelector(".cursor");
			const values = chart.dataset.values.split("|"), { from, step } = chart.parentElement.dataset;
			output.ariaLive = chart === chosen ? "polite" : "off";
			if (0 > column) {
				output.textContent = output.dataset.newest;
				cursor.removeAttribute("x1");
				continue;
			}
			const at = new Date((Number(from) + (column + .5) * Number(step)) * 1000).toISOString();
			const day = values.length * step > 86400 ? at.slice(0, 10) + " " : "";
			output.textContent = (values[column] || "no number") + " at " + day + at.slice(11, 19);
			for (const end of ["x1", "x2"]) cursor.setAttribute(end, (column + .5) / values.length * 100 + "%");
		}
	};
	const readAt = (chart, to) => {
		if (chart === null) if (0 > column) return;
		const columns = chart === null ? 0 : chart.dataset.values.split("|").length;
		chosen = chart;
		column = Math.min(Math.max(to, chart === null ? -1 : 0), columns - 1);
		read();
	};
	const point = (event) => {
		const chart = event.target.closest("figure[data-values]");
		if (chart === null) return readAt(null, -1);
		const plot = chart.querySelector(".plot").getBoundingClientRect();
		readAt(chart, Math.floor((event.clientX - plot.left) / plot.width * chart.dataset.values.split("|").length));
	};
	document.addEventListener("pointermove", point);
	document.addEventListener("pointerdown", point);

	// step moves the focus to another row of the tables and lists.
	const step = (by) => {
		const rows = [...document.querySelectorAll("tbody th a, .causes h3 a")];
		const now = rows.indexOf(document.activeElement);
		rows[0 > now ? 0 : Math.min(Math.max(now + by, 0), rows.length - 1)]?.focus();
	};
	document.addEventListener("keydown", (event) => {
		if (event.ctrlKey || event.altKey || event.metaKey) return;
		const target = event.target;
		if (target.matches("input, select, textarea")) {
			if (event.key === "Escape") target.blur();
			return;
		}
		const keys = {
			"/": () => document.querySelector("input[type=search]").focus(), "j": () => step(1), "k": () => step(-1),
		};
		if (target.matches("figure[data-values]")) {
			const last = target.dataset.values.split("|").length - 1, now = 0 > column ? last : column;
			Object.assign(keys, {
				"ArrowLeft": () => readAt(target, now - 1), "ArrowRight": () => readAt(target, now + 1),
				"Home": () => readAt(target, 0), "End": () => readAt(target, last), "Escape": () => readAt(null, -1),
			});
		}
		if (!keys[event.key]) return;
		event.preventDefault();
		keys[event.key]();
	});
	document.getElementById("keys").hidden = false;
	if (!seconds) return; // the page does not change, or its address says refresh=off

	// update makes the node old equal to the node now, and keeps every element that stays.
	const update = (old, now) => {
		if (old.nodeType !== now.nodeType || old.nodeName !== now.nodeName) {
			old.replaceWith(now.cloneNode(true));
			return;
		}
		if (old.nodeType !== Node.ELEMENT_NODE) {
			if (old.nodeValue !== now.nodeValue) old.nodeValue = now.nodeValue;
			return;
		}
		for (const { name } of [...old.attributes]) {
			if (name === "open" || now.hasAttribute(name)) continue;
			old.removeAttribute(name);
		}
		for (const { name, value } of now.attributes) {
			if (name === "open" || old.getAttribute(name) === value) continue;
			old.setAttribute(name, value);
		}
		const before = [...old.childNodes], after = [...now.childNodes];
		after.forEach((child, i) => before[i] ? update(before[i], child) : old.append(child.cloneNode(true)));
		before.slice(after.length).forEach(child => child.remove());
	};

	const selecting = () => {
		const selection = getSelection();
		if (selection === null || selection.isCollapsed) return false;
		return document.getElementById("main").contains(selection.anchorNode);
	};

	let asking = false;
	const refresh = async () => {
		if (paused || document.hidden || asking) return;
		asking = true;
		try {
			const answer = await fetch(location.href, { cache: "no-store", credentials: "same-origin", signal: AbortSignal.timeout(Math.max(seconds, 15) * 1000) });
			const page = new DOMParser().parseFromString(await answer.text(), "text/html");
			if (!page.getElementById("main")) throw new Error(answer.status + " " + answer.statusText);
			warn("");
			if (paused || selecting()) return;
			document.title = page.title;
			for (const part of ["main", "asof"]) update(document.getElementById(part), page.getElementById(part));
			read();
		} catch (error) {
			warn(error.message);
		} finally {
			asking = false;
		}
	};
	document.addEventListener("visibilitychange", refresh);

	// warn makes the page pale while weir does not answer, and shows since when. Without a trouble it ends
	// that.
	const warn = (trouble) => {
		const bar = document.getElementById("gone"), last = document.querySelector("#asof time").dateTime.slice(11, 19);
		const text = trouble ? "No answer since " + last + " UTC: " + trouble.replace(/\.$/, "") + ". What is below is from then." : "";
		if (bar.textContent !== text) bar.textContent = text; // it is read aloud once
		document.body.classList.toggle("gone", text !== "");
	};

	const tell = () => {
		toggle.textContent = paused ? "resume" : "pause";
		toggle.previousElementSibling.textContent = paused ? "paused" : "refreshes every " + seconds + " s";
	};
	toggle.addEventListener("click", (event) => {
		event.preventDefault();
		paused = !paused;
		try { localStorage.setItem(key, paused ? "off" : "on"); } catch { /* it holds for this page */ }
		tell();
		refresh();
	});
	tell();
	setInterval(refresh, seconds * 1000);
})();
