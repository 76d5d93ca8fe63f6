// `npm run docs`: makes the documentation site from README.md, docs/ and the other pages, in site/ or `-- --out DIR`: static files with
// a search, which open from a disk too and ask no other server. A link or anchor that leads nowhere is an error. DIR is replaced, so it
// must be empty or a site that this made.
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, posix, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { outsideLoads } from './outside-loads.mjs';
import { installPackages } from './setup.mjs';
import { reasonToKeep, SITE_MARKER } from './site-folder.mjs';
import { fail, root } from './steps.mjs';

const { values } = parseArgs({ options: { out: { type: 'string', default: 'site' } } });
const PARTS = join(root, 'scripts', 'docs-site');
/** Characters of a section that the search shows. */
const START = 160;
const site = resolve(values.out);
refuseForeign();

/** The pages besides docs/, in the order of the menu. */
const GROUPS = [
  [
    'Start',
    [
      'README.md',
      'docs/agents.md',
      'docs/corpora.md',
      'docs/models.md',
      'docs/gpu.md',
      'docs/building.md',
      'docs/operations.md',
    ],
  ],
  [
    'Reference',
    ['docs/command-line.md', 'docs/configuration.md', 'docs/http-api.md', 'docs/dialects.md', 'docs/errors.md'],
  ],
  ['Clients', ['clients/retrieval/README.md', 'clients/python/README.md']],
  [
    'Measurements',
    [
      'bench/README.md',
      'bench/search.md',
      'bench/encoder.md',
      'bench/server.md',
      'bench/bm25.md',
      'bench/quality.md',
      'docs/reproduce.md',
    ],
  ],
  [
    'Project',
    [
      'docs/architecture.md',
      'docs/index-format.md',
      'docs/testing.md',
      'CONTRIBUTING.md',
      'SECURITY.md',
      'CHANGELOG.md',
    ],
  ],
];

await installPackages({ development: true });
const { default: MarkdownIt } = await import('markdown-it');
const { default: MiniSearch } = await import('minisearch');
const markdown = new MarkdownIt({ html: true });
focusScrollable();

const named = GROUPS.flatMap(([, paths]) => paths);
const more = readdirSync(join(root, 'docs'))
  .filter((name) => name.endsWith('.md') && !named.includes(`docs/${name}`))
  .map((name) => `docs/${name}`);
const groups = [GROUPS[0], ['More', more], ...GROUPS.slice(1)];
const pages = new Map(groups.flatMap(([, paths]) => paths).map((path) => [path, readPage(path)]));
const problems = [];
for (const page of pages.values()) page.html = render(page);
if (problems.length > 0) fail(`${problems.join('\n')}\n${problems.length} links lead nowhere.`);
for (const [name, text] of [...pages.values()].map((page) => [page.path, wholePage(page)]).concat([styles()])) {
  const [address] = outsideLoads(text);
  if (address !== undefined) fail(`${name} would load ${address}. A page of the site may load only files of the site.`);
}
writeSite(site);

/** Lets the arrow keys scroll what may be wider than the page. */
function focusScrollable() {
  const { fence } = markdown.renderer.rules;
  markdown.renderer.rules.fence = (...args) => fence(...args).replace('<pre', '<pre tabindex="0"');
  markdown.core.ruler.push('focus-tables', ({ tokens }) => {
    for (const token of tokens) if (token.type === 'table_open') token.attrSet('tabindex', '0');
  });
}

function refuseForeign() {
  const reason = reasonToKeep(site);
  if (reason !== undefined) fail(reason);
}

/** A page with the ids of its headings, as GitHub makes them. */
function readPage(path) {
  const tokens = markdown.parse(readFileSync(join(root, path), 'utf8'), {});
  const anchors = new Set();
  const sections = [];
  let title;
  for (const [i, token] of tokens.entries()) {
    if (token.type === 'heading_open') {
      const text = plainText(tokens[i + 1]);
      const slug = uniqueSlug(text, anchors);
      token.attrSet('id', slug);
      title ??= text;
      sections.push({ slug, heading: text, text: '' });
    } else if ((token.type === 'inline' && tokens[i - 1]?.type !== 'heading_open') || token.type === 'fence') {
      const section = sections.at(-1);
      if (section !== undefined) section.text += ` ${token.type === 'fence' ? token.content : plainText(token)}`;
    }
    for (const [, id] of (token.content ?? '').matchAll(/<a (?:id|name)="([^"]+)"/g)) anchors.add(id);
  }
  return { path, title: title ?? path, tokens, anchors, sections, file: fileOf(path) };
}

function fileOf(path) {
  return path === 'README.md' ? 'index.html' : path.replace(/\.md$/, '.html');
}

function plainText(token) {
  return (token.children ?? []).map(({ type, content }) => (type === 'softbreak' ? ' ' : content)).join('');
}

function uniqueSlug(text, taken) {
  const base = text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/\s/g, '-');
  let slug = base;
  for (let n = 1; taken.has(slug); n++) slug = `${base}-${n}`;
  taken.add(slug);
  return slug;
}

function render(page) {
  for (const token of page.tokens) {
    for (const child of token.children ?? []) {
      if (child.type === 'link_open') child.attrSet('href', linked(page, child.attrGet('href'), child));
      if (child.type === 'image') linked(page, child.attrGet('src'), child);
    }
  }
  return markdown.renderer.render(page.tokens, markdown.options, {});
}

/** Where a link leads in the site. Files that are no pages are named without a link. */
function linked(page, href, token) {
  if (/^[a-z]+:/.test(href)) return href;
  const [path, anchor] = href.split('#');
  const target = path === '' ? page.path : posix.normalize(posix.join(posix.dirname(page.path), decodeURI(path)));
  const at = relativeTo(page, fileOf(target));
  const there = pages.get(target);
  if (there !== undefined) {
    if (anchor === undefined || there.anchors.has(anchor)) return anchor === undefined ? at : `${at}#${anchor}`;
    problems.push(`${page.path}: ${target} has no #${anchor}`);
    return href;
  }
  if (!existsSync(join(root, target))) problems.push(`${page.path}: there is no ${target}`);
  else if (!/\.(png|svg)$/.test(target)) token.attrSet('class', 'file');
  return /\.(png|svg)$/.test(target) ? relativeTo(page, target) : `#`;
}

function relativeTo(page, file) {
  return posix.relative(posix.dirname(page.file), file) || posix.basename(file);
}

function writeSite(folder) {
  const made = `${folder}.${process.pid}`;
  rmSync(made, { recursive: true, force: true });
  const write = (file, text) => {
    mkdirSync(dirname(join(made, file)), { recursive: true });
    writeFileSync(join(made, file), text);
  };
  const index = new MiniSearch({
    fields: ['heading', 'title', 'text'],
    storeFields: ['heading', 'title', 'url', 'start'],
  });
  for (const page of pages.values()) {
    write(page.file, wholePage(page));
    for (const { slug, heading, text } of page.sections) {
      const start = startOf(text.trim().replace(/\s+/g, ' '));
      index.add({ id: `${page.file}#${slug}`, heading, title: page.title, text, url: `${page.file}#${slug}`, start });
    }
  }
  write('search-index.js', `window.trawlIndex = ${JSON.stringify(JSON.stringify(index))};\n`);
  for (const file of ['site.css', 'search.js']) cpSync(join(PARTS, file), join(made, file));
  cpSync(join(root, 'node_modules', 'minisearch', 'dist', 'umd', 'index.js'), join(made, 'minisearch.js'));
  mkdirSync(join(made, 'docs'), { recursive: true });
  for (const name of readdirSync(join(root, 'docs')).filter((file) => file.endsWith('.png')))
    cpSync(join(root, 'docs', name), join(made, 'docs', name));
  write(SITE_MARKER, 'npm run docs made this folder and replaces it.\n');
  // Again, because making the pages takes a while.
  refuseForeign();
  rmSync(folder, { recursive: true, force: true });
  renameSync(made, folder);
  process.stdout.write(`${relative(process.cwd(), folder) || folder}/index.html: ${pages.size} pages\n`);
}

/** The first words of a text, for the list of what was found. */
function startOf(text) {
  return text.length <= START ? text : `${text.slice(0, START).replace(/\s+\S*$/, '')} …`;
}

function styles() {
  return ['site.css', readFileSync(join(PARTS, 'site.css'), 'utf8')];
}

function wholePage(page) {
  const at = (file) => relativeTo(page, file);
  const escaped = (text) => markdown.utils.escapeHtml(text);
  const menu = groups.map(
    ([name, paths]) =>
      `<h2>${name}</h2><ul>${paths
        .map((path) => {
          const here = path === page.path ? ' aria-current="page"' : '';
          return `<li><a href="${at(fileOf(path))}"${here}>${escaped(pages.get(path).title)}</a></li>`;
        })
        .join('')}</ul>`,
  );
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(page.title)} · Trawl</title>
<link rel="stylesheet" href="${at('site.css')}">
</head>
<body data-root="${at('index.html').replace(/index\.html$/, '')}">
<header><a href="${at('index.html')}">Trawl</a>
<a class="to-pages" href="#pages">Pages</a>
<input id="search" type="search" placeholder="Search the documents" aria-label="Search the documents" autocomplete="off"></header>
<ol id="found" hidden></ol>
<div class="columns"><nav id="pages" aria-label="Pages">${menu.join('')}</nav>
<main>${page.html}</main></div>
<script src="${at('minisearch.js')}"></script><script src="${at('search-index.js')}"></script><script src="${at('search.js')}"></script>
</body>
</html>
`;
}

/** The folder with the packages. */
