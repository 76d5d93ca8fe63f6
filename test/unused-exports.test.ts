import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { packageRoot } from '../src/base/package-root.ts';
import { readSources, type SourceFile } from './helpers/source-imports.ts';

/** The entry points of the package, whose exports users import. */
const ENTRY_FILES: readonly string[] = ['src/index.ts', 'src/client/index.ts'];

/** Exports that only tests import. */
const FOR_TESTS: Readonly<Record<string, readonly string[]>> = {
  'bench/baselines.ts': ['baselineFolder'],
  'bench/lucene.ts': ['COMPARED_LUCENE', 'mavenLock', 'withoutLucene'],
  'bench/vectors/vector-basis.ts': ['basisOfFile', 'basisOfSpectrum'],
  'indexer/hub/select-files.ts': ['matchingFiles'],
  'src/engine/native/load-addon.ts': ['ADDON_PATH'],
  'bench/figures/marked-pages.ts': ['withFigures', 'withTables'],
  'bench/reproduce/reproduce.ts': ['comparisonReport'],
  'evaluation/speed/speed-trial.ts': ['TRIED_QUERIES', 'costOf'],
  'bench/embed/embed-case.ts': ['smallestCosine'],
  'bench/serve/search-calls.ts': ['SAME_QUERY_PROBABILITY'],
  'bench/serve/serve-answers.ts': ['sameAnswer'],
  'cli/commands/doctor.ts': ['chosenLines', 'encoderLines', 'gpuLines'],
  'cli/launch/launch-lines.ts': ['LAUNCH_FLAGS'],
  'cli/serve/server-log.ts': ['prettyLines'],
  'src/server/dialects/r1-searcher.ts': ['tsvLine'],
};

const sources = readSources();
const scripts = readdirSync(join(packageRoot, 'scripts'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.mjs'))
  .map((name) => readFileSync(join(packageRoot, 'scripts', name), 'utf8'));

/** Exported functions, classes and values. Types are not counted: users of a function need the types of its parameters. */
function exportedNames({ text }: SourceFile): string[] {
  const declared = /^export (?:async |abstract )*(?:const|let|function\*?|class) (\w+)/gm;
  return [...text.matchAll(declared)].map(([, name]) => name!);
}

/** The texts of the files that import `path`; scripts import its compiled file. */
function importersOf(path: string): string[] {
  const importing = sources.filter(
    (file) =>
      (path.startsWith('test/') || !file.path.startsWith('test/')) &&
      file.imports.some(({ internal, target }) => internal && target === path),
  );
  const compiled = `dist/${path.replace(/\.ts$/, '.js')}`;
  return [...importing.map(({ text }) => text), ...scripts.filter((text) => text.includes(compiled))];
}

test('every export is used by another file, and not only by a test', () => {
  const unused = sources
    .filter(({ path }) => !ENTRY_FILES.includes(path))
    .flatMap((file) => {
      const importers = importersOf(file.path);
      return exportedNames(file)
        .filter((name) => !(FOR_TESTS[file.path] ?? []).includes(name))
        .filter((name) => !importers.some((text) => new RegExp(`\\b${name}\\b`).test(text)))
        .map((name) => `${file.path}: ${name}`);
    });
  assert.deepEqual(unused, [], 'Remove them, or their `export`.');
});

test('every exception is an export that tests import', () => {
  for (const [path, names] of Object.entries(FOR_TESTS)) {
    const file = sources.find((each) => each.path === path);
    assert.ok(file !== undefined, `${path} does not exist`);
    for (const name of names) {
      assert.ok(exportedNames(file).includes(name), `${path} does not export ${name}`);
      assert.ok(
        sources.some(({ path: user, text }) => user.startsWith('test/') && text.includes(name)),
        `no test uses ${name}`,
      );
      assert.ok(
        !importersOf(path).some((text) => new RegExp(`\\b${name}\\b`).test(text)),
        `another file uses ${name}: remove the exception`,
      );
    }
  }
});

test('every file is a program, a test or imported by another file', () => {
  const programs = /^(?:cli\/trawl|src\/index|src\/client\/index|test\/cli\/trawl-driver)\.ts$|^test\/.*\.test\.ts$/;
  const unused = sources
    .map(({ path }) => path)
    .filter((path) => !programs.test(path) && importersOf(path).length === 0);
  assert.deepEqual(unused, []);
});
