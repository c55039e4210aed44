// Keyboard: `/` searches, `g` and a letter open a page, `j` and `k` move in a list, `?` lists all keys.
export function keys(root) {
  const dialog = root.getElementById("keys");
  const pages = new Map([...root.querySelectorAll("nav a[data-key]")].map((link) => [link.dataset.key, link.href]));
  const opener = root.querySelector("[data-keys]");
  if (opener) {
    opener.hidden = false;
    opener.addEventListener("click", () => dialog.showModal());
  }
  let going = 0;
  root.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select") || dialog.open) return;
    if (going > Date.now()) {
      going = 0;
      if (pages.has(event.key)) {
        event.preventDefault();
        location.assign(pages.get(event.key));
      }
      return;
    }
    if (event.key === "g") going = Date.now() + 1500;
    else if (event.key === "?") dialog.showModal();
    else if (event.key === "/") {
      event.preventDefault();
      const field = root.querySelector("[data-search]");
      if (field) field.focus();
      else location.assign("/search");
    } else if (event.key === "j" || event.key === "k") walk(root, event.key === "j" ? 1 : -1);
  });
}

function walk(root, step) {
  const rows = [...root.querySelectorAll("[data-row]")].filter((row) => !row.closest("details:not([open])"));
  if (!rows.length) return;
  const now = rows.findIndex((row) => row.classList.contains("here"));
  const next = rows[Math.min(Math.max(now + step, 0), rows.length - 1)];
  rows.forEach((row) => row.classList.toggle("here", row === next));
  const link = next.querySelector("a");
  if (link) link.focus();
  next.scrollIntoView({ block: "nearest" });
}
