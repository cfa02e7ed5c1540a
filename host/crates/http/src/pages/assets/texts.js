// Texts of a page's script, in the language of the page.

const texts = JSON.parse(document.getElementById("texts")?.textContent ?? "{}");

/** Returns a text with the values of its variables. The server hands over the texts that the script
    names in calls of this function. */
function text(key, values = {}) {
  return texts[key].replace(/\{\$(\w+)\}/g, (_, name) => values[name]);
}

