// The search of the documentation site: finds sections while one types. The index is search-index.js, so that nothing is requested.
const root = document.body.dataset.root;
const field = document.getElementById('search');
const list = document.getElementById('found');
const index = window.MiniSearch.loadJSON(window.trawlIndex, {
  fields: ['heading', 'title', 'text'],
  storeFields: ['heading', 'title', 'url', 'start'],
});

function show() {
  const found = index.search(field.value, {
    prefix: true,
    fuzzy: 0.1,
    boost: { heading: 3, title: 2 },
    combineWith: 'AND',
  });
  list.replaceChildren(
    ...found.slice(0, 20).map(({ heading, title, url, start }) => {
      const item = document.createElement('li');
      const link = document.createElement('a');
      link.href = root + url;
      link.textContent = heading === title ? title : `${title}: ${heading}`;
      const text = document.createElement('p');
      text.textContent = start;
      item.append(link, text);
      return item;
    }),
  );
  if (found.length === 0 && field.value !== '')
    list.append(Object.assign(document.createElement('li'), { textContent: 'Nothing found.' }));
  list.hidden = field.value === '';
}

field.addEventListener('input', show);
document.addEventListener('keydown', (event) => {
  if (event.key === '/' && document.activeElement !== field) {
    event.preventDefault();
    field.focus();
  } else if (event.key === 'Escape') {
    field.value = '';
    show();
  } else if (event.key === 'Enter' && document.activeElement === field) list.querySelector('a')?.click();
});
