// Figures: a button under each saves it as PNG, in black on white whatever the page's colours are. Without this script
// each figure can still be saved as SVG.
(() => {
  const SCALE = 3; // pixels for each unit of the drawing: sharp in print
  const save = (svg, name) => {
    const copy = svg.cloneNode(true);
    const [, , width, height] = svg.getAttribute("viewBox").split(/\s+/).map(Number);
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    copy.setAttribute("width", width * SCALE);
    copy.setAttribute("height", height * SCALE);
    copy.setAttribute("color", "#000");
    const image = new Image();
    image.onload = () => {
      const canvas = document.createElement("canvas");
      canvas.width = width * SCALE;
      canvas.height = height * SCALE;
      const brush = canvas.getContext("2d");
      brush.fillStyle = "#fff";
      brush.fillRect(0, 0, canvas.width, canvas.height);
      brush.drawImage(image, 0, 0, canvas.width, canvas.height);
      const link = document.createElement("a");
      link.download = `${name}.png`;
      link.href = canvas.toDataURL("image/png");
      link.click();
    };
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(new XMLSerializer().serializeToString(copy))}`;
  };
  const add = () => {
    for (const svg of document.querySelectorAll(".hunch-figure svg[viewBox]")) {
      if (svg.parentNode.querySelector("button.hunch-png")) continue;
      const title = svg.querySelector("title")?.textContent || "figure";
      const button = document.createElement("button");
      button.type = "button";
      button.className = "button hunch-png";
      button.id = `png-${svg.querySelector("title")?.id || title}`;
      button.textContent = "Save as PNG";
      button.setAttribute("aria-label", `Save as PNG: ${title}`);
      button.addEventListener("click", () => save(svg, title.toLowerCase().replace(/[^a-z0-9]+/g, "-")));
      svg.insertAdjacentElement("afterend", button);
    }
  };
  add();
  document.addEventListener("htmx:afterSwap", add);
})();
