// What every page adds to its HTML, which works without JavaScript.
import { copying } from "./copy.js";
import { keys } from "./keys.js";
import { rankmap } from "./rankmap.js";
import { scrollToRoot } from "./scrolling.js";

copying(document);
keys(document);
document.querySelectorAll("[data-rankmap]").forEach(rankmap);
document.querySelectorAll(".picture").forEach(scrollToRoot);
// A permalink to a line inside closed details opens them.
const reveal = () => {
  const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  for (let box = target.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
  target.scrollIntoView();
};
// Back to a form that was refused: most browsers still have what was written into it.
document.querySelectorAll("[data-back]").forEach((link) => link.addEventListener("click", (event) => {
  event.preventDefault();
  history.back();
}));
addEventListener("hashchange", reveal);
reveal();
