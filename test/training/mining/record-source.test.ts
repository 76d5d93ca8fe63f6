import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { appendFileSync, chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { MiningQuery } from '../../../training/mining/mined-query.ts';
import { openRecordSource, type RecordSource } from '../../../training/mining/record-source.ts';
import { recordLine } from '../../helpers/record-lines.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';

async function sourceOf(t: TestContext, ...lines: readonly string[]): Promise<{ path: string; source: RecordSource }> {
  const path = join(await tempFolder(t), 'calls.jsonl');
  writeFileSync(path, lines.join(''));
  const source = await openRecordSource([path]);
  t.after(() => source.close());
  return { path, source };
}

async function queriesOf(source: RecordSource): Promise<(readonly [string, string | undefined])[]> {
  const read = [];
  for await (const query of source.queries({})) read.push(query as MiningQuery);
  return read.map(({ question, query }) => [question, query] as const);
}

test('a text that the client composed of question and sub-query is cut, also where the question is known', async (t) => {
  const { source } = await sourceOf(
    t,
    recordLine('Who? [SEP] the engineer'),
    recordLine('Who? [SEP] the engineer', { question: 'Who?' }),
    recordLine('A [SEP] B? [SEP] the engineer', { question: 'A [SEP] B?' }),
    recordLine('Where? [SEP] the engineer', { question: 'Who?' }),
    recordLine('the engineer', { question: 'Who?' }),
    recordLine('Who?', { question: 'Who?' }),
  );
  assert.deepEqual(await queriesOf(source), [
    ['Who?', 'the engineer'],
    ['Who?', 'the engineer'],
    ['A [SEP] B?', 'the engineer'],
    ['Who?', 'Where? [SEP] the engineer'],
    ['Who?', 'the engineer'],
    ['Who?', 'Who?'],
  ]);
});

test('checksums are those of the lines that were read, whatever a server appends later', async (t) => {
  const line = recordLine('first');
  const { path, source } = await sourceOf(t, line);
  await queriesOf(source);
  appendFileSync(path, recordLine('second'));
  assert.deepEqual(source.checksums(), [{ path, sha256: createHash('sha256').update(line).digest('hex') }]);
});

test('permissions for files with the queries are no wider than those of any file of records', async (t) => {
  const folder = await tempFolder(t);
  const paths = [0o644, 0o460].map((mode, i) => {
    const path = join(folder, `calls-${i}.jsonl`);
    writeFileSync(path, recordLine('x'));
    chmodSync(path, mode);
    return path;
  });
  for (const [files, mode] of [
    [paths, 0o640],
    [paths.slice(0, 1), 0o644],
  ] as const) {
    const source = await openRecordSource(files);
    t.after(() => source.close());
    assert.equal(source.mode, mode);
  }
});
