import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readSources } from '../helpers/source-imports.ts';

const sources = readSources();

function withoutComments(text: string): string {
  return text.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/^\s*\/\/.*$/gm, '');
}

test('only src/base/options reads the environment, and only cli and exitProcess end the process and handle signals', () => {
  for (const file of sources) {
    if (file.path.startsWith('test/')) continue;
    const code = withoutComments(file.text);
    if (/\bprocess\.env\b/.test(code)) assert.match(file.path, /^src\/base\/options\//);
    if (/\bprocess\.(exit|exitCode|abort)\b|\bprocess\.\w+\('SIG/.test(code))
      assert.match(file.path, /^(cli\/|src\/base\/system\/exit-process\.ts$)/);
  }
});

test('a route that leases a retriever limits it to the views of the request', () => {
  const leasing = sources.filter(
    ({ path, text }) => path.startsWith('src/server/') && /\bholder\.lease(?:All)?\(/.test(text),
  );
  // Most routes lease by `withRetriever`.
  assert.ok(leasing.some(({ path }) => path === 'src/server/indexes/view-choice.ts') && leasing.length > 2);
  for (const { path, text } of leasing) assert.match(text, /\bretrieverFor\(/, path);
});

test('only src/base/system counts cores, because it respects the CPU quota of a container', () => {
  for (const file of sources) {
    if (file.path.startsWith('test/') || file.path.startsWith('src/base/system/')) continue;
    assert.doesNotMatch(withoutComments(file.text), /\b(?:availableParallelism|hardwareConcurrency)\b/, file.path);
  }
});

test('the client needs no other module and no API of Node.js', () => {
  const files = sources.filter(({ path }) => path.startsWith('src/client/'));
  assert.ok(files.length > 3);
  for (const { path, imports, text } of files) {
    for (const { target, typeOnly } of imports) {
      assert.ok(typeOnly || target.startsWith('src/client/'), `${path} needs ${target} to run`);
    }
    assert.doesNotMatch(withoutComments(text), /\b(?:Buffer|process|require)\b/, path);
  }
});

test('src/base/errors.ts has no HTTP status codes and imports nothing', () => {
  const errors = sources.find((file) => file.path === 'src/base/errors.ts')!;
  assert.equal(errors.imports.length, 0);
  assert.doesNotMatch(errors.text, /\b[45]\d\d\b/);
});
