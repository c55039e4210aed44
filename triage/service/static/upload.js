// Drag and drop, and the progress of an upload. Without this the browser itself sends the form.
const form = document.querySelector("[data-upload]");
if (form) {
  const drop = form.querySelector("[data-drop]"), input = form.querySelector("input[type=file]");
  const box = form.querySelector("[data-progress]"), bar = box.querySelector("progress"), status = box.querySelector("[role=status]");
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
    status.textContent = "sending";
    request.upload.addEventListener("progress", (sent) => {
      if (!sent.lengthComputable) return;
      bar.value = Math.round((100 * sent.loaded) / sent.total);
      status.textContent = `${bar.value} % of ${(sent.total / 1e6).toFixed(1)} MB sent`;
    });
    const failed = (message) => {
      button.disabled = false;
      status.textContent = message;
    };
    request.addEventListener("error", () => failed("The connection failed. Try again."));
    request.addEventListener("load", () => {
      if (request.status < 400) return location.assign(request.responseURL);
      let message = `The server refused the upload (${request.status}).`;
      try {
        const { error } = JSON.parse(request.responseText);
        message = `${error.message}: ${error.hint}`;
      } catch { /* not JSON */ }
      failed(message);
    });
    request.open("POST", form.action);
    request.setRequestHeader("Accept", "application/json");
    request.send(new FormData(form));
  });
}
