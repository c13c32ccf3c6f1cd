// Copy buttons, and a live part that is not replaced while somebody is about to decide in it.
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button || !navigator.clipboard) return;
  navigator.clipboard.writeText(button.dataset.copy).then(() => {
    button.textContent = "Copied";
  });
});
document.addEventListener("htmx:beforeSwap", (event) => {
  const part = event.detail.target;
  const busy = part.querySelector("[popover]:popover-open, form.settle input:checked");
  if (busy || part.contains(document.activeElement) && document.activeElement.matches("input, select")) {
    event.detail.shouldSwap = false;
  }
});
