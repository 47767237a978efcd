// The page works without this script: it adds a key, refreshes what runs, and loads slow parts.

const search = document.querySelector("#search");
document.addEventListener("keydown", (event) => {
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  if (search) {
    search.focus();
    search.select();
  } else {
    location.href = `${document.body.dataset.home}?focus=1`;
  }
});
if (search && new URLSearchParams(location.search).has("focus")) search.focus();

// A part of a page that takes long to make; the server has escaped it.
for (const place of document.querySelectorAll("[data-part]")) {
  fetch(place.dataset.part)
    .then((answer) => (answer.ok ? answer.text() : Promise.reject(answer.status)))
    .then((text) => { place.innerHTML = text; })
    .catch(() => { place.querySelector("[role=status]").textContent = "It could not be loaded."; });
}

// A study that runs: every field has the name of a value in the answer.
const EVERY_MS = 2000;
async function refresh(panel) {
  const note = panel.querySelector("[data-field=fresh]");
  try {
    const answer = await fetch(panel.dataset.live);
    const state = await answer.json();
    if (!answer.ok) throw new Error(state.error);
    for (const field of panel.querySelectorAll("[data-field]")) {
      const value = state.words[field.dataset.field];
      // Only a change is written, so that a screen reader reads only changes.
      if (value !== undefined && field.textContent !== value) field.textContent = value;
    }
    const bar = panel.querySelector("progress");
    if (bar) {
      if (state.done === null) bar.removeAttribute("value");
      else bar.value = state.done;
    }
    if (!state.active) {
      note.textContent = "The study does not run any more. ";
      const link = document.createElement("a");
      link.href = panel.dataset.page;
      link.textContent = "Load its page again";
      note.append(link);
      return;
    }
  } catch (problem) {
    note.textContent = "No answer: autotune ui has ended, or the study is gone.";
  }
  setTimeout(() => refresh(panel), EVERY_MS);
}
for (const panel of document.querySelectorAll("[data-live]")) setTimeout(() => refresh(panel), EVERY_MS);
