import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { tempFolder } from '../helpers/temp-folder.ts';
import { jsonOf, runTrawl, SAMPLE_PASSAGES } from './run-trawl.ts';

interface IndexReport {
  readonly built: boolean;
  readonly folder: string;
  readonly rows: number;
  readonly dimension: number;
  readonly metric: string;
  readonly generation: string;
  readonly model: string;
  readonly corpus: {
    readonly files: readonly { readonly name: string; readonly passages: number }[];
    readonly skippedLines: number;
  };
  readonly tokens?: number;
  readonly skippedExamples?: readonly string[];
  readonly duplicates?: { readonly count: number };
  readonly stageMs?: { readonly read: number; readonly encode: number; readonly finish: number };
}

function lines(count: number, from = 0): string {
  return Array.from(
    { length: count },
    (_, i) => `${JSON.stringify({ id: `p${from + i}`, contents: `"T${i}"\nsome words number ${from + i}` })}\n`,
  ).join('');
}

test('without a terminal, a build logs plain lines and ends with a report', async (t) => {
  const cwd = await tempFolder(t);
  const { code, stdout, stderr } = await runTrawl(['index', SAMPLE_PASSAGES, '--out', 'made/here'], { cwd });
  assert.equal(code, 0);
  assert.equal(stdout, '');
  assert.match(
    stderr,
    /^scanning\nreading\nencoding\nfinishing\n.*made\/here: 270 passages × \d+, .* of vectors, model token-average-256\n {2}read .* passages\/s, /,
  );
  assert.doesNotMatch(stderr, /\u001b/);
  assert.deepEqual(readdirSync(join(cwd, 'made')), ['here']);
});

test('--json prints one object on stdout and one event per line on stderr; --quiet prints nothing', async (t) => {
  const cwd = await tempFolder(t);
  const ended = await runTrawl(['index', SAMPLE_PASSAGES, '--out', 'a', '--json'], { cwd });
  const events = ended.stderr
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  assert.deepEqual(
    events.map(({ event, stage }) => [event, stage]),
    ['scan', 'read', 'encode', 'finish'].map((stage) => ['progress', stage]),
  );
  assert.deepEqual([events[2]!['totalPassages'], events[2]!['shards'], events[3]!['share']], [270, 1, 1]);
  const report = jsonOf<IndexReport>(ended);
  assert.deepEqual(
    [report.built, report.rows, report.model, report.corpus.files.length, report.corpus.files[0]!.passages],
    [true, 270, 'token-average-256', 1, 270],
  );
  assert.equal(report.folder, join(cwd, 'a'));
  assert.match(report.generation, /^[0-9a-f]{32}$/);
  assert.ok(report.tokens! > 270 && report.stageMs!.encode > 0);
  const quiet = await runTrawl(['index', SAMPLE_PASSAGES, '--out', 'b', '--quiet'], { cwd });
  assert.deepEqual(quiet, { code: 0, signal: null, stdout: '', stderr: '' });
});

test('--if-changed builds only if the corpus changed, and says so as text and as JSON', async (t) => {
  const cwd = await tempFolder(t);
  writeFileSync(join(cwd, 'c.jsonl'), lines(3));
  const args = ['index', 'c.jsonl', '--out', 'ix', '--if-changed'];
  const first = jsonOf<IndexReport>(await runTrawl([...args, '--json'], { cwd }));
  assert.equal(first.built, true);
  const again = jsonOf<IndexReport>(await runTrawl([...args, '--json'], { cwd }));
  assert.deepEqual(
    [again.built, again.generation, again.rows, again.folder],
    [false, first.generation, 3, first.folder],
  );
  const { stdout, stderr } = await runTrawl(args, { cwd });
  assert.deepEqual([stdout, stderr], ['', 'ix is up to date; nothing to do.\n']);
  writeFileSync(join(cwd, 'c.jsonl'), lines(4));
  const changed = jsonOf<IndexReport>(await runTrawl([...args, '--json'], { cwd }));
  assert.deepEqual([changed.built, changed.rows], [true, 4]);
});

test('bad lines, repeated ids and truncated passages are reported with examples', async (t) => {
  const cwd = await tempFolder(t);
  const long = JSON.stringify({ id: 'p1', contents: 'word '.repeat(3000) });
  writeFileSync(join(cwd, 'c.jsonl'), `${lines(2)}{broken\n${long}\n`);
  const refused = await runTrawl(['index', 'c.jsonl', '--out', 'ix'], { cwd });
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /c\.jsonl:3: .*--skip-bad-lines\. \[CORPUS_BAD_LINE\]/);
  assert.equal(existsSync(join(cwd, 'ix')) || existsSync(join(cwd, 'ix.partial')), false);
  const { code, stderr } = await runTrawl(['index', 'c.jsonl', '--out', 'ix', '--skip-bad-lines'], { cwd });
  assert.equal(code, 0);
  assert.match(stderr, /1 passage truncated to 512 tokens/);
  assert.match(stderr, /1 bad line skipped:\n {4}c\.jsonl:3: /);
  assert.match(stderr, /1 passage with the id of an earlier passage:\n {4}"p1" on lines 2, 4/);
});

test('a column that looks like an id and one without values are named in warnings, and the option for it is used by updates, too', async (t) => {
  const cwd = await tempFolder(t);
  const rows = ['a', 'b'].map((id) => `${JSON.stringify({ article_id: id, headline: 'H', text: `text ${id}` })}\n`);
  writeFileSync(join(cwd, 'c.jsonl'), rows.join(''));
  const filters = ['--column', 'article_id:string', '--column', 'Headline:string'];
  const first = await runTrawl(['index', 'c.jsonl', '--out', 'ix', ...filters], { cwd });
  assert.match(first.stderr, /Warning: none of 2 passages has a value in the column "Headline"\./);
  assert.match(
    first.stderr,
    /Warning: c\.jsonl:1 has no id, but the column "article_id" looks like one.*--id-column article_id/,
  );
  const columns = ['--id-column', 'article_id', '--title-column', 'headline'];
  const { code, stderr } = await runTrawl(['index', 'c.jsonl', '--out', 'ix', '--if-changed', ...columns], { cwd });
  assert.equal(code, 0, stderr);
  assert.doesNotMatch(stderr, /Warning|without an id|up to date/);
  const again = await runTrawl(['index', 'c.jsonl', '--out', 'ix', '--if-changed', ...columns], { cwd });
  assert.match(again.stderr, /up to date/);
  const update = await runTrawl(['index', 'c.jsonl', '--out', 'ix', '--update', '--json'], { cwd });
  assert.equal(jsonOf<{ kept: number }>(update).kept, 2);
  const { stdout } = await runTrawl(['search', 'ix', 'text b', '--k', '1', '--json'], { cwd });
  assert.match(stdout, /"id":"b","article_id":"b","title":"H","text":"text b"/);
});

test('an index is replaced only with --overwrite, and a folder that is no index never', async (t) => {
  const cwd = await tempFolder(t);
  writeFileSync(join(cwd, 'c.jsonl'), lines(2));
  assert.equal((await runTrawl(['index', 'c.jsonl', '--out', 'ix', '--quiet'], { cwd })).code, 0);
  const before = readFileSync(join(cwd, 'ix', 'manifest.json'));
  const again = await runTrawl(['index', 'c.jsonl', '--out', 'ix'], { cwd });
  assert.equal(again.code, 1);
  assert.match(again.stderr, /already is an index.*--overwrite\. \[INDEX_EXISTS\]/);
  const foreign = await runTrawl(['index', 'c.jsonl', '--out', '.', '--overwrite'], { cwd });
  assert.match(foreign.stderr, /already exists and is not an index\. It is not replaced.*\[INDEX_EXISTS\]/);
  assert.deepEqual(readFileSync(join(cwd, 'ix', 'manifest.json')), before);
});

test('an output folder that cannot be written is named with the reason', async (t) => {
  const cwd = await tempFolder(t);
  writeFileSync(join(cwd, 'c.jsonl'), lines(2));
  const below = await runTrawl(['index', 'c.jsonl', '--out', 'c.jsonl/ix'], { cwd });
  assert.equal(below.code, 1);
  assert.match(
    below.stderr,
    /c\.jsonl\/ix cannot be written: a part of the path is a file\. \[OUTPUT_NOT_WRITABLE\]\n$/,
  );
  const proc = await runTrawl(['index', 'c.jsonl', '--out', '/proc/trawl-test'], { cwd });
  assert.match(proc.stderr, /\/proc\/trawl-test cannot be written: .*\[(OUTPUT_NOT_WRITABLE)\]\n$/);
});
