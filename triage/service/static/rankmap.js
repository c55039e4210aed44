// Shows the rank under the pointer of a rank map. The list below the map has the same without a pointer.
export function rankmap(box) {
  const svg = box.querySelector("svg");
  if (!svg || !svg.dataset.columns) return;
  const [columns, cell, left, top] = ["columns", "cell", "left", "top"].map((name) => Number(svg.dataset[name]));
  const label = document.createElement("p");
  label.className = "dim";
  label.textContent = "Point at a cell to see its rank.";
  box.after(label);
  svg.addEventListener("pointermove", (event) => {
    const at = svg.createSVGPoint();
    at.x = event.clientX;
    at.y = event.clientY;
    const place = at.matrixTransform(svg.getScreenCTM().inverse());
    const column = Math.floor((place.x - left) / cell), row = Math.floor((place.y - top) / cell);
    const state = event.target.closest("path[class]");
    if (column < 0 || column >= columns || row < 0) return;
    const rank = row * columns + column;
    const name = state && !["gaps", "blamed", "rim", "row"].includes(state.getAttribute("class")) ? `: ${state.getAttribute("class")}` : "";
    label.textContent = `rank ${rank}${name}`;
  });
}
