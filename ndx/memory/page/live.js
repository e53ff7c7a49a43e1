"use strict";

// Sort the table by a click on a column, and show the rows that contain a text.

const body = document.querySelector(".live tbody");

function value(row, column) {
  const text = row.cells[column].textContent;
  const number = Number.parseFloat(text);
  return Number.isNaN(number) || /^\(/.test(text) ? text : number;
}

document.querySelectorAll(".live th").forEach((head, column) => {
  head.tabIndex = 0;
  let sign = -1;
  const sort = () => {
    const rows = [...body.rows];
    rows.sort((a, b) => {
      const [x, y] = [value(a, column), value(b, column)];
      return sign * (typeof x === typeof y && typeof x === "number"
        ? x - y : String(x).localeCompare(String(y)));
    });
    body.append(...rows);
    sign = -sign;
  };
  head.addEventListener("click", sort);
  head.addEventListener("keydown", (event) => {
    if (event.key === "Enter") sort();
  });
});

document.getElementById("search").addEventListener("input", (event) => {
  for (const row of body.rows) {
    row.hidden = !row.textContent.includes(event.target.value);
  }
});
