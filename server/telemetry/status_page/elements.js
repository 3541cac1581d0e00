// Making elements. Texts that are not ours only ever become text nodes and attributes without a meaning
// to the browser (never HTML, addresses or handlers).

const SVG = "http://www.w3.org/2000/svg";

// `children`: elements or texts.
function element(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

function svgElement(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// Writes only what has changed, so that selections and screen readers are not disturbed.
function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// The children of `parent` for these keys, in this order: kept from last time where they are there.
class KeyedChildren {
  #parent;
  #make;
  #byKey = new Map();

  // `make(key)`: a new child, an object with the property `element`.
  constructor(parent, make) {
    this.#parent = parent;
    this.#make = make;
  }

  update(keys) {
    const kept = new Map(keys.map((key) => [key, this.#byKey.get(key) ?? this.#make(key)]));
    this.#byKey = kept;
    const elements = [...kept.values()].map((child) => child.element);
    if (elements.some((child, i) => child !== this.#parent.children[i])
        || elements.length !== this.#parent.children.length) {
      this.#parent.replaceChildren(...elements);
    }
    return kept;
  }
}
