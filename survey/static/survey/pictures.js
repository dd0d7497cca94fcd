// Figures: a button saves each as PNG, in black on white whatever the page's colours are, and the numbers of its
// marks are read by keys and by touch, where no tooltip comes. Without this script each figure can still be saved as SVG.
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
  // Arrow keys go from mark to mark of a figure that has the focus; a click or a touch chooses one.
  const readable = (svg) => {
    const number = document.createElement("p");
    number.className = "hunch-number";
    number.setAttribute("role", "status");
    svg.insertAdjacentElement("afterend", number);
    const marks = [...svg.querySelectorAll("title")]
      .map((title) => title.parentNode)
      .filter((part) => part !== svg && part.querySelectorAll("title").length === 1 && !part.querySelector("text"));
    if (!marks.length) return;
    let at = -1;
    const choose = (place) => {
      marks[at]?.classList.remove("hunch-mark");
      at = Math.min(Math.max(place, 0), marks.length - 1);
      marks[at].classList.add("hunch-mark");
      number.textContent = marks[at].querySelector("title").textContent;
    };
    svg.setAttribute("tabindex", "0");
    svg.addEventListener("keydown", (event) => {
      const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: marks.length - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      choose(to);
    });
    svg.addEventListener("click", (event) => {
      const place = marks.findIndex((mark) => mark.contains(event.target));
      if (place >= 0) choose(place);
    });
  };
  const add = () => {
    for (const svg of document.querySelectorAll(".hunch-figure svg[viewBox]")) {
      if (svg.dataset.saved) continue;
      svg.dataset.saved = "true";
      const title = svg.querySelector("title")?.textContent || "figure";
      const button = document.createElement("button");
      button.type = "button";
      button.className = "button hunch-png";
      button.id = `png-${svg.querySelector("title")?.id || title}`;
      button.textContent = "Save as PNG";
      button.setAttribute("aria-label", `Save as PNG: ${title}`);
      button.addEventListener("click", () => save(svg, title.toLowerCase().replace(/[^a-z0-9]+/g, "-")));
      // Where the picture has a menu of formats, PNG is one of them.
      const menu = svg.closest(".hunch-figure").nextElementSibling?.querySelector(".hunch-menu form");
      if (menu) menu.append(button);
      else svg.insertAdjacentElement("afterend", button);
      readable(svg);
    }
  };
  add();
  document.addEventListener("htmx:afterSwap", add);
})();
