import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { fileFolder, runTrawl, sampleIndex, serveIndex } from '../cli/run-trawl.ts';
import { importedCrossEncoder } from '../encoder/rerank/tiny-cross-encoder.ts';
import { PEERS } from '../helpers/peers.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const CHECKS = [
  'not_a_server_error',
  'status_code_conformance',
  'content_type_conformance',
  'response_headers_conformance',
  'response_schema_conformance',
];
const without = (...names: string[]): string[] => CHECKS.filter((check) => !names.includes(check));

/** Answered with 501 by a server that was not started with --dialect elasticsearch. */
const ELASTICSEARCH = ['/{index}/_search'];
/** schemathesis 4.32 converts the prefixItems of their replies to another draft, which it then finds invalid. */
const TUPLES = ['/search', '/batch_search'];
const RUNS: readonly { readonly what: string; readonly checks: string[]; readonly paths: string[] }[] = [
  {
    what: 'every route',
    checks: CHECKS,
    paths: [...ELASTICSEARCH, ...TUPLES].flatMap((path) => ['--exclude-path', path]),
  },
  {
    what: 'replies that are tuples',
    checks: without('response_schema_conformance'),
    paths: TUPLES.flatMap((path) => ['--include-path', path]),
  },
  {
    what: 'Elasticsearch’s route on a server that does not serve it',
    checks: without('not_a_server_error'),
    paths: ELASTICSEARCH.flatMap((path) => ['--include-path', path]),
  },
];

test('every answer that schemathesis gets is described by the OpenAPI document', {
  skip: PEERS.missing(),
}, async (t) => {
  const index = await sampleIndex(await fileFolder());
  // With every mode and both fields, no search is refused for what the index lacks.
  const made = await runTrawl(['optimize', index, '--bm25', '--bm25-fields', 'title,text', '--quiet']);
  assert.equal(made.code, 0, made.stderr);
  // With a reranker, no route is refused for its lack; depth 0 leaves plain searches unreranked.
  const { url } = await serveIndex(t, index, ['--rerank', await importedCrossEncoder(t), '--rerank-depth', '0']);
  const cwd = await tempFolder(t);
  for (const { what, checks, paths } of RUNS) {
    const child = spawn(
      PEERS.python,
      [
        ...['-m', 'schemathesis.cli', 'run', `${url}/docs/openapi.json`, '--checks', checks.join(','), ...paths],
        ...['--phases', 'examples,coverage,fuzzing', '--max-examples', '15', '--max-time', '15', '--seed', '1'],
        ...['--generation-database', 'none', '--continue-on-failure', '--no-color'],
      ],
      { cwd, stdio: ['ignore', 'pipe', 'pipe'] },
    );
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk));
    const [code] = await once(child, 'close');
    assert.equal(code, 0, `${what}: ${output}`);
    assert.match(output, /[1-9]\d* generated/, what);
  }
  assert.equal((await fetch(`${url}/livez`)).status, 200);
});
