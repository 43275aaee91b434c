"use strict";
// Brings the newest state of the page every few seconds, without loading the page again: what is
// typed, focused, unfolded and scrolled stays. Without this script the page reloads as a whole.
(() => {
	const seconds = Number(document.body.dataset.refresh), toggle = document.getElementById("refresh");
	const key = "weir-refresh"; // "off" while paused; it holds for all pages of this browser
	const remembered = () => { try { return localStorage.getItem(key); } catch { return null; } };
	let paused = remembered() === "off";

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

	const refresh = async () => {
		if (paused || document.hidden || selecting()) return;
		try {
			const answer = await fetch(location.href, { cache: "no-store", credentials: "same-origin" });
			const page = new DOMParser().parseFromString(await answer.text(), "text/html");
			if (!page.getElementById("main")) throw new Error(answer.status + " " + answer.statusText);
			if (paused || selecting()) return;
			document.title = page.title;
			for (const part of ["main", "asof"]) update(document.getElementById(part), page.getElementById(part));
			tell("");
		} catch (error) {
			tell("not refreshed: " + error.message);
		}
	};

	const tell = (trouble) => {
		toggle.textContent = paused ? "resume" : "pause";
		toggle.previousElementSibling.textContent = trouble || (paused ? "paused" : "refreshes every " + seconds + " s");
	};
	toggle.addEventListener("click", (event) => {
		event.preventDefault();
		paused = !paused;
		try { localStorage.setItem(key, paused ? "off" : "on"); } catch { /* it holds for this page */ }
		tell("");
		refresh();
	});
	tell("");
	setInterval(refresh, seconds * 1000);
})();
