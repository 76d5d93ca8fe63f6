import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { packageRoot } from '../../src/base/package-root.ts';
import type { Dialect } from '../../src/server/dialects/dialect.ts';
import { DIALECTS } from '../../src/server/dialects/dispatch.ts';

/** Dialects with a row in the documents: not Trawl's own API, and not the second path of a dialect. */
const NAMED = DIALECTS.filter(({ projects }) => projects.length > 0);
const ROUTES = [...new Set(NAMED.map(routeOf))];
/** By route, first the dialect that takes any body: most clients send it. */
const ROWS = ROUTES.flatMap((route) =>
  NAMED.filter((dialect) => routeOf(dialect) === route).toSorted(
    (a, b) => Number(takesAnyBody(b)) - Number(takesAnyBody(a)),
  ),
);

/** What each document has of the dialects, between two marks. `TRAWL_UPDATE_DOCS=1 npm test -- docs` writes it. */
const TABLES: Readonly<Record<string, () => string>> = {
  'README.md': () =>
    table(
      ['Route', 'Clients'],
      ROUTES.map((route) => [
        route,
        ROWS.filter((dialect) => routeOf(dialect) === route)
          .map(namesOf)
          .join('; '),
      ]),
    ),
  'docs/dialects.md': () =>
    table(
      ['Dialect', 'Clients', 'Routes', 'Recognised by', 'A hit has'],
      ROWS.map((dialect) => [
        `\`${dialect.name}\``,
        namesOf(dialect),
        [...new Set([dialect, ...secondsOf(dialect)].map(routeOf))].join(', '),
        recognisedBy(dialect),
        hitOf(dialect),
      ]),
    ),
  'docs/operations.md': () =>
    table(
      ['Dialects', 'A search is held for'],
      HELD.map((ms) => [
        DIALECTS.filter(({ holdMs }) => holdMs === ms)
          .map(({ name }) => `\`${name}\``)
          .join(', '),
        Number.isFinite(ms) ? `${ms / 1000} s` : '`--hold-s` (3600 s)',
      ]),
    ),
  'docs/agents.md': () =>
    table(
      ['Project', 'Setting', 'Checked against'],
      ROWS.flatMap(({ projects }) =>
        projects.flatMap(({ name, setting, checkedAgainst = 'its sources' }) =>
          setting === undefined ? [] : [[name, setting, checkedAgainst]],
        ),
      ),
    ),
};

const HELD = [...new Set(DIALECTS.map(({ holdMs }) => holdMs))]
  .filter((ms) => ms > 0)
  .toSorted((a, b) => (a < b ? 1 : -1));

const BEGIN = '<!-- dialects, made from src/server/dialects -->';
const END = '<!-- end of dialects -->';

for (const [path, make] of Object.entries(TABLES)) {
  test(`${path} names every dialect as the code does`, () => {
    const file = join(packageRoot, path);
    const text = readFileSync(file, 'utf8');
    const [begin, end] = [text.indexOf(BEGIN), text.indexOf(END)];
    assert.ok(begin !== -1 && end > begin, `${path} has no marks`);
    const made = `${text.slice(0, begin)}${BEGIN}\n\n${make()}\n\n${text.slice(end)}`;
    if (process.env['TRAWL_UPDATE_DOCS'] === '1') writeFileSync(file, made);
    else assert.equal(text, made, `${path} is out of date: TRAWL_UPDATE_DOCS=1 npm test -- docs`);
  });
}

test('docs/dialects.md has a section with a request for every dialect of other projects', () => {
  const file = join(packageRoot, 'docs', 'dialects.md');
  if (process.env['TRAWL_UPDATE_DOCS'] === '1') {
    const text = readFileSync(file, 'utf8');
    const added = ROWS.filter(({ name }) => !hasSection(text, name)).map(newSection);
    if (added.length > 0) writeFileSync(file, text + added.join(''));
  }
  const text = readFileSync(file, 'utf8');
  for (const { name, section = name, path } of DIALECTS)
    assert.ok(
      path.startsWith('/v1/') || hasSection(text, section),
      `${name}: TRAWL_UPDATE_DOCS=1 npm test -- docs adds a section`,
    );
});

function hasSection(text: string, name: string): boolean {
  const section = text.split(/^## /m).find((part) => part.startsWith(`${name}\n`));
  return section !== undefined && /^```sh\ncurl /m.test(section);
}

/** The section of a new dialect, to which its author adds what is not in the table. */
function newSection({ name, summary, method, path, example }: Dialect): string {
  const url = `http://127.0.0.1:8000${path}`;
  const parameters = Object.entries(example).map(([key, value]): [string, string] => [key, String(value)]);
  const curl =
    method === 'GET'
      ? `curl -s '${url}?${new URLSearchParams(parameters)}'`
      : `curl -s ${url} -H 'content-type: application/json' \\\n  -d '${JSON.stringify(example).replaceAll("'", "'\\''")}'`;
  return `\n## ${name}\n\n${summary}.\n\n\`\`\`sh\n${curl}\n\`\`\`\n`;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

function namesOf({ projects }: Dialect): string {
  return projects.map(({ name }) => name).join(', ');
}

function routeOf({ method, path }: Dialect): string {
  return `\`${method} ${path.replace(/:(\w+)/, '{$1}')}\``;
}

function takesAnyBody({ onlyIfNamed, claims }: Dialect): boolean {
  return !onlyIfNamed && claims({}, false);
}

/** The dialects that the section of another describes. */
function secondsOf({ name }: Dialect): readonly Dialect[] {
  return DIALECTS.filter(({ section }) => section === name);
}

function recognisedBy(dialect: Dialect): string {
  const { name, method, path, keys, onlyIfNamed } = dialect;
  if (onlyIfNamed || name === 'elasticsearch') return `\`--dialect ${name}\``;
  const onPath = DIALECTS.filter((other) => other.path === path && other.name !== name && other.section !== name);
  if (onPath.every((other) => other.method !== method)) return onPath.length === 0 ? 'its path' : 'its method';
  if (dialect.recognisedBy !== undefined) return dialect.recognisedBy;
  if (keys === undefined) return 'any other body';
  const names = new Intl.ListFormat('en-GB', { type: 'disjunction' }).format(keys.map((key) => `\`${key}\``));
  return takesAnyBody(dialect) ? `${names}, or no other dialect's key` : names;
}

function hitOf({ client }: Dialect): string {
  return client?.hit.map((part) => (part === 'contents' ? 'title and text in one' : part)).join(', ') ?? '—';
}
