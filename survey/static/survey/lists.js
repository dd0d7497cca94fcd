// Lists on a phone: each row stands as a card, each value under the name of its column. Without this script the table
// scrolls sideways.
document.addEventListener("DOMContentLoaded", () => {
  const list = document.getElementById("result_list");
  if (!list) return;
  const names = [...list.querySelectorAll("thead th")].map((head) => (head.querySelector(".text") || head).textContent.trim());
  list.querySelectorAll("tbody tr").forEach((row) => {
    [...row.children].forEach((cell, place) => {
      cell.dataset.label = names[place] || "";
      if (cell.tagName === "TH") cell.setAttribute("scope", "row");
    });
  });
  list.classList.add("hunch-stack", "hunch-sortable");
});
