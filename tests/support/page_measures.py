"""What can be measured of the drawn page: text that is cut off, and the contrast of text with its ground."""

from tests.support.browser import Browser

# Elements that stick out of their card, or whose text does not fit into them.
CUT = """
const fits = (el) => {
  const card = (el.closest(".card, .tile") ?? document.body).getBoundingClientRect();
  const text = [...el.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
  const isCut = text && el.clientWidth > 0 && el.scrollWidth > el.clientWidth + 1;
  return el.getBoundingClientRect().right <= card.right + 1 && !isCut;
};
return [...document.querySelectorAll("header, header *, main *, footer *")]
  .filter((el) => el.checkVisibility() && !el.closest("svg") && !fits(el))
  .map((el) => `${el.tagName} ${el.className || el.id} ${el.textContent.slice(0, 40)}`);
"""


# WCAG's contrast of each kind of text with what is behind it.
CONTRASTS = """
const luminance = (rgb) => rgb.map((c) => c / 255)
  .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
  .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
const parts = (text) => text.match(/[0-9.]+/g).map(Number);
const ground = (el) => {
  for (let at = el; at; at = at.parentElement) {
    const [r, g, b, a = 1] = parts(getComputedStyle(at).backgroundColor);
    if (a === 1) return [r, g, b];
  }
};
const found = {};
const selectors = [
  "h1", "#role", "#facts", ".tile b", ".tile span", ".hint", ".tag", ".replica.leads", ".replica.in", ".replica.out",
  "td", "th", ".decision .why", ".decision .seq", ".broker .more", "kbd", "footer",
];
for (const selector of selectors) {
  const el = document.querySelector(selector);
  const [one, other] = [parts(getComputedStyle(el).color).slice(0, 3), ground(el)].map(luminance);
  found[selector] = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
}
return found;
"""


def contrasts(window: Browser) -> dict[str, float]:
    return dict(window.run(CONTRASTS))
