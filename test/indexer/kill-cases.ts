import assert from 'node:assert/strict';
import { cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { openRowFilters } from '../../src/engine/columns/open-row-filters.ts';
import { bindFilter } from '../../src/engine/filter/bind-filter.ts';
import { openLexicalIndex } from '../../src/engine/lexical/open-lexical.ts';
import { readIndexManifest } from '../../src/index/manifest/read-manifest.ts';
import { openIndexDirectory } from '../../src/search/opening/index-directory.ts';

/** Commands that are killed and run again, and then compared with an undisturbed run. */
export interface KillCase {
  readonly name: string;
  /** Cases of one group make the same index. */
  readonly group: string;
  /** Prepares what the commands find. */
  readonly prepare?: (out: string) => Promise<void> | void;
  readonly commands: (out: string) => readonly (readonly string[])[];
  /** Parts of the work of a group's first case into which the commands divide it. Default: 1. */
  readonly parts?: number;
  /** Runs undisturbed after the commands: it removes what they leave for servers. */
  readonly after?: (out: string) => readonly string[];
  /** What must hold after every kill. */
  readonly check?: (out: string) => Promise<void> | void;
}

export interface CaseInputs {
  readonly folder: string;
  /** Lines of JSON, `passages` of them. */
  readonly corpus: string;
  readonly passages: number;
  readonly random: () => number;
  /** Makes lines of a corpus. */
  corpusText(count: number): string;
  /** Runs a command, which must succeed. */
  run(args: readonly string[]): Promise<unknown>;
}

const SHARDS = 4;
const ENCODING = ['--workers', '2', '--checkpoint-seconds', '0'];
const WORDS = ['--bm25'];
const BOTH = ['--model', 'token-average-256', '--bm25'];
const COLUMNS = ['--column', 'source:string', '--column', 'meta.size:number'];
const WORDS_AND_COLUMNS = [...WORDS, ...COLUMNS];
const NAMES = new Map([
  [WORDS, 'words '],
  [BOTH, 'words and vectors '],
  [WORDS_AND_COLUMNS, 'words and columns '],
]);

/** Builds in one process, by jobs that are merged, and over an old index. */
export async function buildCases(inputs: CaseInputs, more: readonly string[] = []): Promise<KillCase[]> {
  const { folder, corpus, passages, corpusText, run } = inputs;
  const old = join(folder, 'old.jsonl');
  if (!existsSync(old)) writeFileSync(old, corpusText(20));
  const name = NAMES.get(more as string[]) ?? '';
  const hasVectors = more.length === 0 || more.includes('--model');
  const common = [...more, ...(hasVectors ? ENCODING : []), '--quiet'];
  const group = `${name}build`;
  const rows = String(Math.ceil(passages / SHARDS));
  const whole = (out: string): string[] => ['index', corpus, '--out', out, '--shard-rows', rows, ...common];
  const job = (out: string, i: number): string[] => [
    ...['index', corpus, '--out', out, '--shard', `${i}/${SHARDS}`],
    ...common,
  ];
  return [
    { name: `${name}whole`, group, commands: (out) => [whole(out)] },
    {
      name: `${name}jobs`,
      group,
      parts: SHARDS,
      commands: (out) => [...Array.from({ length: SHARDS }, (_, i) => job(out, i)), ['merge', out, '--quiet']],
    },
    {
      name: `${name}over an old index`,
      group,
      prepare: async (out) => void (await run(['index', old, '--out', out, ...more, '--quiet'])),
      commands: (out) => [[...whole(out), '--overwrite']],
      check: assertExists,
    },
  ];
}

/** Builds with inverted indexes, without vectors and with them, and inverted indexes that are added or replaced later. */
export async function wordBuildCases(inputs: CaseInputs): Promise<KillCase[]> {
  const { folder, corpus, passages, run } = inputs;
  const rows = String(Math.ceil(passages / SHARDS));
  const made = async (name: string, more: readonly string[]): Promise<string> => {
    const out = join(folder, name);
    await run(['index', corpus, '--out', out, '--shard-rows', rows, ...more, '--quiet']);
    return out;
  };
  const [vectors, words] = [await made('vectors', []), await made('words', WORDS)];
  return [
    ...(await buildCases(inputs, WORDS)),
    {
      name: 'optimize, words added',
      group: 'words added',
      prepare: (out) => cpSync(vectors, out, { recursive: true }),
      commands: (out) => [['optimize', out, '--bm25', '--quiet']],
      check: (out) => void openIndexDirectory(out),
    },
    ...(await buildCases(inputs, BOTH)),
    {
      name: 'optimize, words replaced',
      group: 'words replaced',
      prepare: (out) => cpSync(words, out, { recursive: true }),
      commands: (out) => [['optimize', out, '--bm25', '--analyser', 'standard', '--quiet']],
      check: assertFindsWords,
    },
  ];
}

/** Builds with columns, and columns that are added later, to an index without any and beside others. */
export async function columnCases(inputs: CaseInputs): Promise<KillCase[]> {
  const { folder, corpus, passages, run } = inputs;
  const rows = String(Math.ceil(passages / SHARDS));
  const cases = await buildCases(inputs, WORDS_AND_COLUMNS);
  const added = await Promise.all(
    [COLUMNS.slice(0, 0), COLUMNS.slice(0, 2)].map(async (present): Promise<KillCase> => {
      const base = join(folder, `with ${present.length} columns`);
      await run(['index', corpus, '--out', base, '--shard-rows', rows, ...WORDS, ...present, '--quiet']);
      return {
        name: present.length === 0 ? 'optimize, columns added' : 'optimize, a column added beside another',
        group: present.length === 0 ? 'columns added' : 'a column added',
        prepare: (out) => cpSync(base, out, { recursive: true }),
        commands: (out) => [['optimize', out, ...COLUMNS, '--quiet']],
        check: assertFilters,
      };
    }),
  );
  return [...added, ...cases];
}

/** An update of an index of two shards that lacks half of the corpus. */
export async function updateCases(inputs: CaseInputs, more: readonly string[] = []): Promise<KillCase[]> {
  const { folder, corpus, passages, run, corpusText, random } = inputs;
  const before = join(folder, 'before.jsonl');
  if (!existsSync(before)) {
    writeFileSync(before, halfAndOthers(readFileSync(corpus, 'utf8'), corpusText(Math.floor(passages / 2)), random));
  }
  const name = more === BOTH ? 'words and vectors update' : more === WORDS ? 'words update' : 'update';
  const base = join(folder, `before ${name}`);
  await run(['index', before, '--out', base, '--shard-rows', String(passages / 2), ...more, '--quiet']);
  const rows = String(Math.ceil(passages / SHARDS));
  const encoding = more === WORDS ? [] : ENCODING;
  return [
    {
      name,
      group: name,
      prepare: (out) => cpSync(base, out, { recursive: true }),
      commands: (out) => [['index', corpus, '--out', out, '--shard-rows', rows, ...encoding, '--quiet', '--update']],
      check: more.length === 0 ? (out) => void openIndexDirectory(out) : assertFindsWords,
    },
  ];
}

/** Updates, removals and compactions of indexes with inverted indexes. */
export async function wordUpdateCases(inputs: CaseInputs): Promise<KillCase[]> {
  const { folder, run } = inputs;
  const [words] = await updateCases(inputs, WORDS);
  const [both] = await updateCases(inputs, BOTH);
  const updated = join(folder, 'updated');
  await both!.prepare!(updated);
  for (const command of both!.commands(updated)) await run(command);
  const prepare = (out: string): void => cpSync(updated, out, { recursive: true });
  const ids = Array.from({ length: 200 }, (_, i) => `p${3 * i}`);
  return [
    words!,
    {
      name: 'remove',
      group: 'remove',
      prepare,
      commands: (out) => [['remove', out, ...ids, '--quiet']],
      check: assertFindsWords,
    },
    both!,
    {
      name: 'compact',
      group: 'compact',
      prepare,
      commands: (out) => [['optimize', out, '--compact', '--quiet']],
      after: (out) => ['optimize', out, '--compact', '--quiet'],
      check: assertFindsWords,
    },
  ];
}

/** Half of the lines, some of them twice, and others. */
function halfAndOthers(corpus: string, others: string, random: () => number): string {
  const lines = corpus.split('\n').filter((line) => line !== '' && random() < 0.5);
  return [
    ...lines.flatMap((line, i) => (i % 50 === 0 ? [line, line] : [line])),
    ...others.split('\n').slice(0, -1),
  ].join('\n');
}

/** At every moment the old or the new index exists; between the two renames of a publication, under its other name. */
function assertExists(out: string): void {
  const aside = readdirSync(dirname(out)).find((name) => name.startsWith(`${basename(out)}.replaced-`));
  assert.ok(readIndexManifest(existsSync(out) ? out : join(dirname(out), aside!)).rows > 0);
}

/** The index opens, and a filter over each column that it names finds passages. */
async function assertFilters(out: string): Promise<void> {
  const { columns, manifest } = openIndexDirectory(out);
  const filters = await openRowFilters(columns, manifest.rows);
  try {
    for (const { name } of columns) {
      const { test } = bindFilter({ column: name, op: 'exists' }, columns, out);
      const found = (await filters.rows(test)).count();
      assert.ok(found > 0 && found < manifest.rows, `${name}: ${found} rows`);
    }
  } finally {
    await filters.close();
  }
}

/** The index opens, in its old or its new generation, and its inverted indexes find passages. */
async function assertFindsWords(out: string): Promise<void> {
  const index = await openLexicalIndex(openIndexDirectory(out).lexical.get('contents')!);
  try {
    const { counts } = await index.search({ queries: ['word1'], k: 10 });
    assert.equal(counts[0], 10);
  } finally {
    await index.close();
  }
}
