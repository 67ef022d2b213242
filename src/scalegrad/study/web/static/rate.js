// Keys 1, 2 and 0 choose, U takes the last answer back. The page works without this script.
"use strict";

const form = document.querySelector("form.answer");
const opened = performance.now();
const armed = 400; // ms: the second half of a double press belongs to the page before
let sent = false;

form?.addEventListener("submit", (event) => {
  if (sent) event.preventDefault();
  sent = true;
  setTimeout(() => { sent = false; }, 3000); // the connection may be lost, and the press repeated
});

document.addEventListener("keydown", (event) => {
  if (event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("textarea, input") || performance.now() - opened < armed) return;
  const button = document.querySelector(`button[data-key="${CSS.escape(event.key.toLowerCase())}"]`);
  if (!button) return;
  event.preventDefault();
  button.classList.add("pressed");
  button.click();
});

// A page that the browser kept in memory may be out of date, and its form was sent already.
window.addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload();
});
