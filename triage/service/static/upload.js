// Drag and drop, and how far an upload is. Without this the form is sent by the browser itself.
const form = document.querySelector("[data-upload]");
if (form) {
  const drop = form.querySelector("[data-drop]"), input = form.querySelector("input[type=file]");
  const box = form.querySelector("[data-progress]"), bar = box.querySelector("progress"), says = box.querySelector("[role=status]");
  for (const name of ["dragenter", "dragover"]) drop.addEventListener(name, (event) => { event.preventDefault(); drop.classList.add("over"); });
  for (const name of ["dragleave", "drop"]) drop.addEventListener(name, (event) => { event.preventDefault(); drop.classList.remove("over"); });
  drop.addEventListener("drop", (event) => {
    if (event.dataTransfer.files.length) input.files = event.dataTransfer.files;
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const request = new XMLHttpRequest();
    const button = form.querySelector("button");
    button.disabled = true;
    box.hidden = false;
    says.textContent = "sending";
    request.upload.addEventListener("progress", (sent) => {
      if (!sent.lengthComputable) return;
      bar.value = Math.round((100 * sent.loaded) / sent.total);
      says.textContent = `${bar.value} % of ${(sent.total / 1e6).toFixed(1)} MB sent`;
    });
    const failed = (message) => {
      button.disabled = false;
      says.textContent = message;
    };
    request.addEventListener("error", () => failed("The connection broke. Try again."));
    request.addEventListener("load", () => {
      if (request.status < 400) return location.assign(request.responseURL);
      let message = `The server refused it (${request.status}).`;
      try {
        const { error } = JSON.parse(request.responseText);
        message = `${error.message}: ${error.hint}`;
      } catch { /* not ours to understand */ }
      failed(message);
    });
    request.open("POST", form.action);
    request.setRequestHeader("Accept", "application/json");
    request.send(new FormData(form));
  });
}
