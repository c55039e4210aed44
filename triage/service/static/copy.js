// Buttons that copy a text. They are hidden in the HTML and appear only where copying works.
export function copying(root) {
  if (!navigator.clipboard) return;
  root.querySelectorAll("button[data-copy]").forEach((button) => {
    const label = button.textContent;
    button.hidden = false;
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(button.dataset.copy);
        button.textContent = "Copied";
      } catch {
        button.textContent = "Not allowed";
      }
      setTimeout(() => (button.textContent = label), 1500);
    });
  });
}
