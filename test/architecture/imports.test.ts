import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readSources, type SourceFile } from '../helpers/source-imports.ts';
import { MAY_IMPORT } from './may-import.ts';
import { within } from './paths.ts';

const sources = readSources();

function ruleFor(file: SourceFile): [string, readonly string[]] {
  const rule = Object.entries(MAY_IMPORT)
    .filter(([place]) => within(file.path, [place]))
    .sort(([a], [b]) => b.length - a.length)[0];
  assert.ok(rule, `test/architecture/may-import/ has no rule for ${file.path}`);
  return rule;
}

test('every folder imports only the folders that MAY_IMPORT lists', () => {
  for (const file of sources) {
    const [place, allowed] = ruleFor(file);
    for (const { target, internal } of file.imports) {
      if (!internal) continue;
      assert.ok(
        within(target, [place, ...allowed]),
        `${file.path} imports ${target}; ${place} may import ${allowed.join(', ') || 'no other file'}`,
      );
    }
  }
});

test('there are no import cycles', () => {
  const byPath = new Map(sources.map((file) => [file.path, file]));
  const done = new Set<string>();
  const visit = (path: string, trail: readonly string[]): void => {
    assert.ok(!trail.includes(path), `import cycle: ${[...trail.slice(trail.indexOf(path)), path].join(' → ')}`);
    if (done.has(path)) return;
    for (const { target, internal } of byPath.get(path)?.imports ?? []) if (internal) visit(target, [...trail, path]);
    done.add(path);
  };
  for (const file of sources) visit(file.path, []);
});

test('readSources finds imports of modules, types and workers', () => {
  const worker = sources.find((file) => file.path === 'src/index/passages/passage-reader.ts')!;
  const targets = worker.imports.map(({ target }) => target);
  assert.ok(targets.includes('src/index/passages/passage-worker.ts'), 'new URL for a worker');
  assert.ok(targets.includes('node:worker_threads'), 'a module');
  assert.ok(targets.includes('src/index/passages/passage-protocol.ts'), 'a type');
  assert.ok(sources.length > 50);
});
