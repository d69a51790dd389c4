// Return what is wrong with a page: controls without names, headings out of order, weak contrast.
() => {
  const wrong = [];
  const isShown = (element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true });

  const named = (element) => {
    const other = document.getElementById(element.getAttribute("aria-labelledby"))?.textContent.trim();
    const label = element.getAttribute("aria-label") || other || element.title || element.textContent.trim();
    return label || [...(element.labels ?? [])].some((each) => each.textContent.trim());
  };
  for (const element of document.querySelectorAll("a, button, input, select, textarea, [role=img]")) {
    if (element.type === "hidden" || !isShown(element)) continue;
    if (!named(element)) wrong.push(`no name: ${element.outerHTML.slice(0, 120)}`);
  }

  let level = 0;
  for (const heading of document.querySelectorAll("main :is(h1, h2, h3, h4)")) {
    const next = Number(heading.tagName[1]);
    if (next > level + 1) wrong.push(`h${next} after h${level}: ${heading.textContent.trim()}`);
    level = next;
  }
  if (document.querySelectorAll("h1").length !== 1) wrong.push("not one h1");
  for (const landmark of ["header", "nav[aria-label]", "main", "footer"]) {
    if (!document.querySelector(landmark)) wrong.push(`no ${landmark}`);
  }
  if (!document.documentElement.lang) wrong.push("no language");
  const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
  for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) wrong.push(`id twice: ${id}`);

  const parse = (text) => (text.match(/[\d.]+/g) ?? []).map(Number);
  const light = ([red, green, blue]) => {
    const part = (value) => {
      const share = value / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    };
    return 0.2126 * part(red) + 0.7152 * part(green) + 0.0722 * part(blue);
  };
  const ground = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const colour = parse(getComputedStyle(each).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const text = walker.currentNode.data.trim();
    if (!text || !isShown(element) || element.closest("script, style, .l, .sr, .skip, option")) continue;
    const style = getComputedStyle(element);
    const isDrawn = element instanceof SVGElement;
    const [lighter, darker] = [light(parse(isDrawn ? style.fill : style.color)), light(ground(element))]
      .sort((left, right) => right - left);
    const contrast = (lighter + 0.05) / (darker + 0.05);
    if (contrast < 4.5) wrong.push(`contrast ${contrast.toFixed(2)}: ${text.slice(0, 60)}`);
  }
  return wrong;
}
