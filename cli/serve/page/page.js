"use strict";

/* A stand-in for the page: shows what the server knows. */
async function show() {
	const answer = await fetch("/api/state");
	document.getElementById("state").textContent = JSON.stringify(await answer.json(), null, 1);
}

show();
