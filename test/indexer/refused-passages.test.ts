import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { BuildProgress } from '../../indexer/building/stages.ts';
import { bm25Settings } from '../../indexer/lexical/make-lexical.ts';
import { opened } from '../encoder/endpoint/opened-endpoint.ts';
import assert from '../helpers/assert.ts';
import { type EmbeddingServerOptions, embeddingServer } from '../helpers/embedding-server.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { trawlError } from '../helpers/trawl-error.ts';
import { build, job, readIndex, writeCorpus } from './build.ts';
import { indexProblems } from './index-problems.ts';
import { filesOf, update } from './update.ts';
import { kernel } from './updated-index.ts';

const SKIPS = { corpusOptions: { skipBadLines: true } };

/** A corpus with a refused text on some lines, and one in which these lines are not JSON. */
async function corpora(t: TestContext, lines: number, refused: readonly number[]) {
  const folder = await tempFolder(t);
  const row = (i: number): string =>
    JSON.stringify({ id: i, contents: refused.includes(i + 1) ? `refused ${i}` : `passage ${i}`, year: 1900 + i });
  const rows = Array.from({ length: lines }, (_, i) => row(i));
  const withBad = rows.map((text, i) => (refused.includes(i + 1) ? 'bad' : text));
  const [corpus, bad] = [join(folder, 'refused'), join(folder, 'bad')].map((place, i) =>
    writeCorpus(place, { 'c.jsonl': `${(i === 0 ? rows : withBad).join('\n')}\n` }),
  ) as [string[], string[]];
  return { folder, corpus, bad };
}

const refusing: NonNullable<EmbeddingServerOptions['answer']> = ({ texts }, _count, response) =>
  texts.some((text) => text.includes('refused')) &&
  Boolean(response.writeHead(400).end('{"error":{"message":"this content is not allowed"}}'));

async function refusingEncoder(t: TestContext, answer = refusing) {
  const server = await embeddingServer(t, { answer });
  return { server, encoder: await opened(t, server.url, { batchTexts: 16 }) };
}

const MADE = {
  kernel,
  bm25: bm25Settings({ analyser: 'english', k1: 0.9, b: 0.4, fields: ['contents'] }),
  columns: [{ name: 'year', type: 'number' }],
} as const;

/** Everything but the manifests, whose corpus files differ. */
function contentOf(index: string): Map<string, Buffer> {
  return new Map([...filesOf(index)].filter(([path]) => !path.endsWith('.json')));
}

test('a passage that the endpoint refuses is left out of all parts of the index, and counted as a bad line', async (t) => {
  const { folder, corpus, bad } = await corpora(t, 40, [18]);
  const { encoder } = await refusingEncoder(t);
  const [out, same] = [join(folder, 'index'), join(folder, 'same')];
  const { manifest, skippedExamples } = await build({ ...MADE, ...SKIPS, corpus, out, encoder });
  await build({ ...MADE, ...SKIPS, corpus: bad, out: same, encoder });
  assert.deepEqual(contentOf(out), contentOf(same));
  assert.deepEqual([manifest.rows, manifest.corpus.skippedLines, manifest.corpus.files[0]!.passages], [39, 1, 39]);
  assert.match(
    skippedExamples.join(),
    /^The passage of row 17 \(line 18\) could not be embedded: .*this content is not allowed/,
  );
  assert.deepEqual(await indexProblems(out), []);
});

test('a build without the option stops at a refused passage, and goes on with it', async (t) => {
  const { folder, corpus } = await corpora(t, 600, [500]);
  const { encoder, server } = await refusingEncoder(t);
  const out = join(folder, 'index');
  await assert.rejects(
    build({ ...MADE, corpus, out, encoder, shardRows: 300, checkpointMs: 0 }),
    trawlError(
      'ENDPOINT_REFUSED',
      /row 199 \(line 500\).*With --skip-bad-lines, the same command resumes and leaves it out/,
    ),
  );
  const before = server.asked.length;
  const { manifest, resumedRows } = await build({ ...MADE, ...SKIPS, corpus, out, encoder, shardRows: 300 });
  assert.equal(resumedRows, 300);
  assert.ok(server.asked.slice(before).every(({ texts }) => !texts.some((text) => text.includes('passage 0'))));
  assert.deepEqual([manifest.rows, manifest.corpus.skippedLines], [599, 1]);
  assert.deepEqual(await indexProblems(out), []);
});

test('refused passages at the borders of shards leave the same index wherever the build is stopped', async (t) => {
  const refused = [1, 256, 300, 301, 600];
  const { folder, corpus, bad } = await corpora(t, 600, refused);
  const { encoder } = await refusingEncoder(t);
  const same = join(folder, 'same');
  await build({ ...MADE, ...SKIPS, corpus: bad, out: same, encoder, shardRows: 300 });
  const stops: [name: string, (progress: BuildProgress) => boolean][] = [
    ['never', () => false],
    ['within a shard', ({ stage, passages }) => stage === 'encode' && passages === 256],
    ['after a shard was embedded', ({ stage, passages }) => stage === 'words' && passages > 0],
  ];
  for (const [name, isStop] of stops) {
    const out = join(folder, name);
    const options = { ...MADE, ...SKIPS, corpus, out, encoder, shardRows: 300, checkpointMs: 0 };
    if (name !== 'never') {
      const stop = new AbortController();
      const onProgress = (progress: BuildProgress): void => (isStop(progress) ? stop.abort() : undefined);
      await assert.rejects(build({ ...options, onProgress, signal: stop.signal }), trawlError('CANCELLED'), name);
    }
    const { manifest } = await build(options);
    assert.deepEqual(contentOf(out), contentOf(same), name);
    assert.equal(manifest.corpus.skippedLines, refused.length, name);
    assert.deepEqual(await indexProblems(out), [], name);
  }
});

test('a shard of which every passage is refused is empty; an index of such shards is an empty corpus', async (t) => {
  const { folder, corpus } = await corpora(t, 20, [11, 12, 13, 14, 15, 16, 17, 18, 19, 20]);
  const { encoder } = await refusingEncoder(t);
  const out = join(folder, 'index');
  const options = { ...MADE, ...SKIPS, corpus, encoder, checkpointMs: 0 };
  const stop = new AbortController();
  const onProgress = ({ stage, passages }: BuildProgress): void =>
    stage === 'encode' && passages === 20 ? stop.abort() : undefined;
  const stopped = build({ ...options, out, shardRows: 10, onProgress, signal: stop.signal });
  await assert.rejects(stopped, trawlError('CANCELLED'));
  const { manifest } = await build({ ...options, out, shardRows: 10 });
  assert.deepEqual([manifest.rows, manifest.shards.map(({ rows }) => rows)], [10, [10, 0]]);
  assert.deepEqual(await indexProblems(out), []);
  const none = writeCorpus(folder, { 'n.jsonl': [{ id: 1, contents: 'refused' }] });
  await assert.rejects(build({ ...options, corpus: none, out: join(folder, 'none') }), trawlError('CORPUS_EMPTY'));
});

test('a fault of the server refuses no passage', async (t) => {
  const { folder, corpus } = await corpora(t, 40, [18]);
  let isBroken = false;
  const { encoder } = await refusingEncoder(t, ({ texts }, _count, response) => {
    isBroken ||= texts.some((text) => text.includes('refused'));
    return isBroken && Boolean(response.writeHead(500).end('{"error":"out of memory"}'));
  });
  const out = join(folder, 'index');
  const stops = trawlError('ENDPOINT_FAILED', /line 1\d?\).*out of memory(?!.*--skip-bad-lines)/);
  await assert.rejects(build({ ...SKIPS, corpus, out, encoder }), stops);
});

test('a job and an update leave refused passages out, too', async (t) => {
  const { folder, corpus, bad } = await corpora(t, 40, [20, 21]);
  const { encoder } = await refusingEncoder(t);
  const out = join(folder, 'index');
  const options = { ...SKIPS, corpus, out, encoder };
  assert.equal((await job(0, 2, options)).manifest.rows, 19);
  const kept = writeCorpus(folder, { 'c.jsonl': '{"id":0,"contents":"passage 0","year":1900}\n' });
  const updated = join(folder, 'updated');
  await build({ ...SKIPS, corpus: kept, out: updated, encoder });
  const done = await update({ ...SKIPS, corpus, out: updated, encoder, shardRows: 19 });
  assert.deepEqual([done.kept, done.added, done.removed, done.manifest.rows], [1, 37, 0, 38]);
  const { files, skippedLines } = done.manifest.corpus;
  assert.deepEqual([files[0]!.passages, skippedLines], [38, 2]);
  assert.match(done.skippedExamples.join(), /line 20.*line 21/);
  assert.deepEqual(await indexProblems(updated), []);
  assert.equal((await update({ ...SKIPS, corpus, out: updated, encoder })).changed, false);
  const whole = join(folder, 'whole');
  await build({ ...SKIPS, corpus: bad, out: whole, encoder });
  assert.equal(readIndex(whole).documents.length, 38);
});
