// A table whose numbers may have a bar behind them.

class BarTable {
  #columns;
  #body = element("tbody");
  #rows = new KeyedChildren(this.#body, (key) => new BarRow(key, this.#columns.length));

  // `columns`: headings; the first is that of the rows' names.
  constructor(title, explanation, columns) {
    this.#columns = columns.slice(1);
    this.element = element("figure", { class: "chart wide" },
      element("figcaption", {}, element("h3", {}, title), element("p", {}, explanation)),
      element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title },
        element("table", { class: "bars" },
          element("thead", {}, element("tr", {},
            ...columns.map((column) => element("th", { scope: "col" }, column)))),
          this.#body)));
  }

  // `rows`: {name, cells}; a cell is {text} or {text, part} with a bar of that part (0 to 1).
  update(rows) {
    const shown = this.#rows.update(rows.map(({ name }) => name));
    for (const { name, cells } of rows) shown.get(name).show(cells);
  }
}

class BarRow {
  #cells;

  constructor(name, numCells) {
    this.#cells = Array.from({ length: numCells }, () => new BarCell());
    this.element = element("tr", {},
      element("th", { scope: "row" }, name), ...this.#cells.map((cell) => cell.element));
  }

  show(cells) {
    cells.forEach((cell, i) => this.#cells[i].show(cell));
  }
}

class BarCell {
  #text = element("span");
  #bar = element("span", { class: "bar", "aria-hidden": "true" });
  element = element("td", {}, this.#text, this.#bar);

  show({ text, part }) {
    setText(this.#text, text);
    this.#bar.hidden = part === undefined;
    this.#bar.style.setProperty("--part", Math.min(1, part || 0));
  }
}
