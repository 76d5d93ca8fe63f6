import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { zstdCompressSync } from 'node:zlib';
import type { RecordStatistics } from '../../training/records/record-statistics.ts';
import { openingLine, recordLine } from '../helpers/record-lines.ts';
import { endOf, fileFolder, jsonOf, runTrawl, spawnTrawl } from './run-trawl.ts';

const cwd = await fileFolder();
let folders = 0;

/** A folder of its own for each test. */
function folder(): string {
  const path = join(cwd, String(++folders));
  mkdirSync(path);
  return path;
}

const at = (time: string): object => ({ time: `2026-11-23T${time}.000Z` });

function queriesIn(text: string): string[] {
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => (JSON.parse(line) as { query: string }).query);
}

test('openings are counted apart, and kept by cat, merge and redact', async () => {
  const path = join(folder(), 'record.jsonl');
  const turn = { trajectory: 't', turn: 1, split: 'train' };
  const lines = [
    recordLine('a', { ...turn, ...at('01:00:00') }),
    openingLine('https://example.org/p', { ...turn, ...at('01:00:02') }),
    openingLine('none', { rows: [], ids: [], ...at('01:00:04') }),
  ];
  writeFileSync(path, lines.join(''));
  const { queries, openings } = jsonOf<RecordStatistics>(await runTrawl(['records', 'stats', path, '--json']));
  assert.deepEqual([queries, openings], [1, { count: 2, found: 1, withoutTrajectory: 1 }]);
  assert.match((await runTrawl(['records', 'stats', path])).stdout, /^openings +2, found 1; 1 without a trajectory$/m);
  assert.equal((await runTrawl(['records', 'cat', path])).stdout, lines.join(''));
  assert.equal((await runTrawl(['records', 'cat', path, '--split', 'train'])).stdout, lines.slice(0, 2).join(''));
  const other = join(folder(), 'other.jsonl');
  // The same opening again, by a client that repeats its call, and another.
  const repeated = openingLine('https://example.org/p', { ...turn, ...at('01:00:03') });
  const more = [openingLine('b', at('01:00:01')), repeated];
  writeFileSync(other, more.join(''));
  const merged = await runTrawl(['records', 'merge', path, other, '--unique']);
  assert.equal(merged.stdout, [lines[0], more[0], lines[1], lines[2]].join(''));
  const redacted = (await runTrawl(['records', 'redact', path, '--drop', 'opened', '--drop', 'ids'])).stdout.split(
    '\n',
  );
  assert.deepEqual(
    [1, 2].map((i) => JSON.parse(redacted[i]!) as object),
    [1, 2].map((i) => {
      const line = JSON.parse(lines[i]!) as { ids: unknown[] };
      return { ...line, opened: '', ids: line.ids.map(() => null) };
    }),
  );
});

test('stats reads a file with its renamed files, as JSON and for people', async () => {
  const path = join(folder(), 'record.jsonl');
  writeFileSync(`${path}.1.zst`, zstdCompressSync(recordLine('a', { trajectory: 't', turn: 1 }) + recordLine('b')));
  writeFileSync(path, recordLine('a', { trajectory: 't', turn: 1 }) + recordLine('c').slice(0, 30));
  const statistics = jsonOf<RecordStatistics>(await runTrawl(['records', 'stats', path, '--json']));
  assert.deepEqual([statistics.queries, statistics.retries, statistics.unfinishedLines], [3, 1, 1]);
  const { code, stdout } = await runTrawl(['records', 'stats', path]);
  assert.equal(code, 0);
  assert.match(stdout, /^queries +3, 2026-11-23T01:02:03\.456Z to /m);
  assert.match(stdout, /^trajectories +1 named, 0 from traces, 0 guessed; 1 turn; 1 queries without$/m);
  assert.match(stdout, /^unfinished +1 last line$/m);
});

test('stats counts damaged lines, names them and exits with 3; cat refuses them, or leaves them out', async () => {
  const path = join(folder(), 'record.jsonl');
  writeFileSync(path, `${recordLine('a')}damaged\n${recordLine('b')}`);
  const stats = await runTrawl(['records', 'stats', path]);
  assert.equal(stats.code, 3);
  assert.match(stats.stdout, /^damaged +1 line\n {2}.*record\.jsonl:2: not valid JSON$/m);
  const refused = await runTrawl(['records', 'cat', path, '--out', `${path}.out`]);
  assert.deepEqual([refused.code, existsSync(`${path}.out`)], [1, false]);
  assert.match(
    refused.stderr,
    /record\.jsonl:2: not valid JSON\. Leave damaged lines out with --skip-damaged\. \[CORPUS_BAD_LINE\]/,
  );
  const skipped = await runTrawl(['records', 'cat', path, '--skip-damaged']);
  assert.deepEqual([skipped.code, queriesIn(skipped.stdout)], [3, ['a', 'b']]);
  assert.match(skipped.stderr, /1 damaged line left out\. `trawl records stats` lists them\./);
});

test('cat writes the lines as they are, selected by time and names', async () => {
  const path = join(folder(), 'record.jsonl');
  const lines = [
    recordLine('a', { ...at('01:00:00'), trajectory: 't1', split: 'train', ids: ['x', null] }),
    recordLine('b', { ...at('02:00:00'), trajectory: 't2', split: 'train', dialect: 'native' }),
    recordLine('c', { ...at('03:00:00'), split: 'test', generation: 'g2', index: 'other', aLaterField: [1.5] }),
  ];
  writeFileSync(path, lines.join(''));
  assert.equal((await runTrawl(['records', 'cat', path])).stdout, lines.join(''));
  for (const [args, wanted] of [
    [
      ['--since', '2026-11-23T02:00:00Z'],
      ['b', 'c'],
    ],
    [['--until', '2026-11-23T02:00'], ['a']],
    [
      ['--since', '2026-11-23T03:00:00+01:00', '--until', '2026-11-24'],
      ['b', 'c'],
    ],
    [
      ['--trajectory', 't1', '--trajectory', 't2'],
      ['a', 'b'],
    ],
    [['--split', 'train', '--dialect', 'native'], ['b']],
    [['--generation', 'g2'], ['c']],
    [['--index', 'other', '--split', 'train'], []],
  ] as const) {
    const { code, stdout } = await runTrawl(['records', 'cat', path, ...args]);
    assert.deepEqual([code, queriesIn(stdout)], [0, wanted], args.join(' '));
  }
});

test('--out appears when it is complete, and replaces neither an input nor, unasked, another file', async () => {
  const path = join(folder(), 'record.jsonl');
  const out = join(path, '..', 'out.jsonl');
  writeFileSync(path, recordLine('a'));
  writeFileSync(`${path}.1`, recordLine('b'));
  const written = await runTrawl(['records', 'cat', path, '--out', out]);
  assert.deepEqual([written.code, written.stdout], [0, '']);
  assert.match(written.stderr, /out\.jsonl: 2 records\./);
  assert.equal(readFileSync(out, 'utf8'), recordLine('b') + recordLine('a'));
  assert.equal(statSync(out).mode & 0o777, 0o600);
  assert.match((await runTrawl(['records', 'cat', path, '--out', out])).stderr, /\[OUTPUT_EXISTS\]/);
  assert.equal((await runTrawl(['records', 'cat', path, '--out', out, '--overwrite'])).code, 0);
  for (const input of [path, `${path}.1`]) {
    const { code, stderr } = await runTrawl(['records', 'cat', path, '--out', input, '--overwrite']);
    assert.equal(code, 2);
    assert.match(stderr, /which is read\. Choose another path/);
  }
  assert.equal(readFileSync(path, 'utf8'), recordLine('a'));
});

test('a reader that closes the pipe early ends cat', async () => {
  const path = join(folder(), 'record.jsonl');
  writeFileSync(path, recordLine('x'.repeat(1000)).repeat(5000));
  const child = spawnTrawl(['records', 'cat', path]);
  child.stdout!.once('data', () => child.stdout!.destroy());
  const { code, stderr } = await endOf(child);
  assert.deepEqual([code, stderr], [0, '']);
});

test('merge sorts the records of several servers by time and keeps the order of each', async () => {
  const [a, b] = [join(folder(), 'record.jsonl'), join(folder(), 'record.jsonl')];
  writeFileSync(`${a}.1`, recordLine('a1', at('01:00:00')) + recordLine('a2', at('03:00:00')));
  writeFileSync(a, recordLine('a3', at('03:00:00')) + recordLine('a4', at('05:00:00')));
  writeFileSync(
    b,
    recordLine('b1', at('02:00:00')) + recordLine('b2', at('03:00:00')) + recordLine('b3', at('06:00:00')),
  );
  const { code, stdout } = await runTrawl(['records', 'merge', a, b]);
  assert.deepEqual([code, queriesIn(stdout)], [0, ['a1', 'b1', 'a2', 'a3', 'b2', 'a4', 'b3']]);
});

test('merge reads a file once that several paths lead to', async () => {
  const path = join(folder(), 'record.jsonl');
  writeFileSync(`${path}.1`, recordLine('a', at('01:00:00')));
  writeFileSync(path, recordLine('b', at('02:00:00')));
  for (const paths of [
    [path, path, `${path}.1`],
    [`${path}.1`, path],
  ]) {
    assert.deepEqual(queriesIn((await runTrawl(['records', 'merge', ...paths])).stdout), ['a', 'b']);
  }
});

test('merge --unique writes a repeated call once, and a failed one beside the one that succeeded', async () => {
  const [a, b] = [join(folder(), 'record.jsonl'), join(folder(), 'record.jsonl')];
  const call = { trajectory: 't', turn: 1 };
  const failed = { error: 'OVERLOADED', rows: [], scores: [], ids: [] };
  writeFileSync(
    a,
    recordLine('q', { ...at('01:00:00'), ...call, ...failed }) +
      recordLine('q', { ...at('01:00:01'), ...call }) +
      recordLine('q', { ...at('01:00:02'), trajectory: 't', turn: 2 }) +
      recordLine('plain', at('01:00:03')) +
      recordLine('plain', at('01:00:04')),
  );
  writeFileSync(
    b,
    recordLine('q', { ...at('01:00:05'), ...call, requestId: 'again' }) + recordLine('plain', at('01:00:03')),
  );
  const all = await runTrawl(['records', 'merge', a, b]);
  assert.equal(queriesIn(all.stdout).length, 7);
  const { stdout, stderr } = await runTrawl(['records', 'merge', a, b, '--unique']);
  assert.deepEqual(queriesIn(stdout), ['q', 'q', 'q', 'plain', 'plain']);
  assert.match(stderr, /2 repeated records left out/);
});

test('trajectories of another step, policy, split or data set are others, though their ids are equal', async () => {
  const path = join(folder(), 'record.jsonl');
  const origins = [{}, { step: 2 }, { policy: 'p' }, { split: 'validation' }, { dataset: 'nq' }];
  const lines = origins.map((origin, i) =>
    recordLine('q', { ...at(`01:00:0${i}`), trajectory: '0', turn: 1, ...origin }),
  );
  writeFileSync(path, lines.join(''));
  const { stdout } = await runTrawl(['records', 'merge', path, '--unique']);
  assert.equal(queriesIn(stdout).length, origins.length);
  const { trajectories, retries } = JSON.parse((await runTrawl(['records', 'stats', path, '--json'])).stdout) as {
    trajectories: { named: number };
    retries: number;
  };
  assert.deepEqual([trajectories.named, retries], [origins.length, 0]);
});

test('redact drops fields and hashes others so that equal texts can still be joined', async () => {
  const path = join(folder(), 'record.jsonl');
  const key = join(path, '..', 'key');
  writeFileSync(key, 'a secret of 16 bytes or more');
  const numbers = recordLine('first', { question: 'Q', requestId: 'r1', tags: { user: 'me' } });
  writeFileSync(
    path,
    numbers.replace('"ids":["a",7]', '"ids":[9007199254740993,null]') +
      recordLine('second', { question: 'Q', history: ['first'], filter: { column: 'c' } }),
  );
  const hashing = ['--hash', 'question', '--hash', 'query', '--hash', 'history', '--key-file', key];
  const { code, stdout } = await runTrawl([
    'records',
    'redact',
    path,
    ...hashing,
    '--drop',
    'requestId',
    '--drop',
    'tags',
    '--drop',
    'filter',
  ]);
  assert.equal(code, 0);
  const hashed = (text: string): string =>
    createHmac('sha256', 'a secret of 16 bytes or more').update(text).digest('hex').slice(0, 32);
  const [one, two] = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  assert.deepEqual(
    [one!.query, one!.question, two!.query, two!.history],
    [hashed('first'), hashed('Q'), hashed('second'), [hashed('first')]],
  );
  assert.equal(one!.question, two!.question);
  for (const name of ['requestId', 'tags', 'filter']) assert.ok(!(name in one!) && !(name in two!), name);
  assert.match(stdout, /"ids":\[9007199254740993,null\]/, 'other fields keep their notation');
  const again = await runTrawl([
    'records',
    'redact',
    path,
    '--drop',
    'query',
    '--hash',
    'ids',
    '--hash',
    'tags',
    '--key-file',
    key,
  ]);
  const [other] = again.stdout.split('\n').map((line) => JSON.parse(line || '{}') as Record<string, unknown>);
  assert.deepEqual(
    [other!.query, other!.ids, other!.tags],
    ['', [hashed('9007199254740993'), null], { user: hashed('me') }],
  );
  writeFileSync(join(path, '..', 'redacted.jsonl'), again.stdout);
  const read = await runTrawl(['records', 'stats', join(path, '..', 'redacted.jsonl'), '--json']);
  assert.equal(jsonOf<RecordStatistics>(read).queries, 2, 'redacted records are records');
});

test('wrong command lines are refused with the way out', async () => {
  const path = join(folder(), 'record.jsonl');
  writeFileSync(path, recordLine('a'));
  const short = join(path, '..', 'short');
  writeFileSync(short, 'secret');
  for (const [args, message] of [
    [['show', path], /expected one of stats, cat, merge, redact/],
    [['stats'], /<file…> is missing/],
    [['stats', path, '--out', 'x'], /trawl records stats has no option --out/],
    [['cat', path, '--unique'], /trawl records cat has no option --unique/],
    [['cat', path, '--since', 'yesterday'], /--since is "yesterday"; expected a date or time/],
    [['cat', path, '--until', '2026-13-01'], /--until is "2026-13-01"/],
    [['redact', path], /needs --drop FIELD or --hash FIELD/],
    [['redact', path, '--drop', 'rows'], /--drop names "rows"; expected some of query,/],
    [['redact', path, '--hash', 'turn', '--key-file', short], /--hash names "turn"|has 6 bytes/],
    [['redact', path, '--hash', 'query'], /--hash needs --key-file/],
    [['redact', path, '--hash', 'query', '--key-file', short], /has 6 bytes; expected at least 16/],
    [['redact', path, '--hash', 'query', '--key-file', `${short}er`], /cannot be read/],
    [['redact', path, '--hash', 'query', '--drop', 'query', '--key-file', path], /in --drop and in --hash/],
  ] as const) {
    const { code, stderr } = await runTrawl(['records', ...args]);
    assert.equal(code, 2, args.join(' '));
    assert.match(stderr, message);
  }
  const missing = await runTrawl(['records', 'stats', join(path, '..', 'none.jsonl')]);
  assert.equal(missing.code, 1);
  assert.match(missing.stderr, /none\.jsonl cannot be read: no such file.*\[CORPUS_NOT_FOUND\]/);
  assert.equal(statSync(path).size, recordLine('a').length);
});
