// On a narrow screen each drawing starts where the failure began, not at its left end.
export function scrollToRoot(box) {
  if (!box.clientWidth) return; // the drawing for the other width
  const mark = box.querySelector("circle.cause, path.cause, path.mark");
  const began = Number(box.dataset.began ?? -1), map = box.querySelector("svg[data-columns]");
  let middle = mark ? mark.getBBox().x + mark.getBBox().width / 2 : 0;
  if (map && began >= 0) {
    const [columns, cell, left] = ["columns", "cell", "left"].map((name) => Number(map.dataset[name]));
    middle = left + ((began % columns) + 0.5) * cell;
  }
  if (middle) box.scrollLeft = Math.max(0, middle - box.clientWidth / 2);
}
