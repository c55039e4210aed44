// Follows a task with server-sent events, and opens the diagnosis when it is done.
const box = document.querySelector("[data-task]");
const status = box.querySelector("[data-status]"), bar = box.querySelector("progress");
const stages = { find: "finding the files", read: "reading", scan: "reading", finish: "comparing the ranks" };
const source = new EventSource(`/api/v1/tasks/${box.dataset.task}/events`);
source.addEventListener("task", (event) => {
  const task = JSON.parse(event.data);
  if (["done", "failed", "cancelled"].includes(task.state)) {
    source.close();
    location.assign(location.pathname);
    return;
  }
  const { stage, done, total } = task.progress ?? {};
  if (total) bar.value = Math.min(100, Math.round((100 * done) / total));
  else bar.removeAttribute("value");
  status.textContent = task.state === "queued" ? "waiting for a worker" : (stages[stage] ?? "working") + (total ? `, ${bar.value} %` : "");
});
