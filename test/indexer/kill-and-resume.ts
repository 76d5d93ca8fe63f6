import assert from 'node:assert/strict';
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { PassageFile } from '../../src/index/passages/passage-file.ts';
import { type FaultLibrary, faultLibrary } from '../helpers/fault-library.ts';
import { expectOk, runCommand as run } from '../helpers/run-command.ts';
import { seededRandom } from '../helpers/seeded-random.ts';
import {
  buildCases,
  type CaseInputs,
  columnCases,
  type KillCase,
  updateCases,
  wordBuildCases,
  wordUpdateCases,
} from './kill-cases.ts';

export interface KillTest {
  /** Empty folder to work in. */
  readonly folder: string;
  /** Number of kills. */
  readonly moments: number;
  readonly seed: number;
  readonly passages: number;
  /** Kill updates of an index instead of builds. */
  readonly updates?: boolean;
  /** With inverted indexes. Builds include those by `trawl optimize`, updates include removals and compactions. */
  readonly bm25?: boolean;
  /** Kill builds with columns for filters, and `trawl optimize` that adds columns, instead of other commands. */
  readonly columns?: boolean;
  /** Options that choose another encoder for builds. Default: token-average-256. */
  readonly encoder?: readonly string[];
  readonly onMoment?: (text: string) => void;
}

export interface KillTestResult {
  /** Kills of a running process; the others came too late. */
  readonly kills: number;
  /** Of these, kills at a file operation. */
  readonly atCalls: number;
  /** File operations of an undisturbed build; the most of all cases. */
  readonly calls: number;
  /** Why there were no kills at file operations, if so. */
  readonly withoutCalls: string | undefined;
  /** Builds that were completed and found equal to the undisturbed one. */
  readonly compared: number;
}

/**
 * Kills commands at a random time or at a random file operation, and runs the same command again until each is complete.
 * Every index is compared with that of an undisturbed run.
 */
export async function killAndResume(options: KillTest): Promise<KillTestResult> {
  const { folder, moments, seed, passages, columns = false, onMoment = () => undefined } = options;
  const { updates = false, bm25 = false, encoder } = options;
  const random = seededRandom(seed);
  const corpus = join(folder, 'corpus.jsonl');
  writeFileSync(corpus, corpusText(passages, random));
  const ofPassages = updates ? (bm25 ? wordUpdateCases : updateCases) : bm25 ? wordBuildCases : buildCases;
  const ofCorpus = columns ? columnCases : ofPassages;
  const makeCases = (inputs: CaseInputs) =>
    encoder === undefined ? ofCorpus(inputs) : buildCases(inputs, ['--model', ...encoder]);
  const cases = await makeCases({
    folder,
    corpus,
    passages,
    random,
    corpusText: (count) => corpusText(count, random),
    run: async (args) => expectOk(await run(args)),
  });
  const library = faultLibrary(folder);
  const undisturbed = new Map<string, Undisturbed>();
  let [kills, atCalls, compared, mostCalls] = [0, 0, 0, 0];
  let moment = 0;
  for (let chain = 0; moment < moments; chain++) {
    const out = join(folder, `ix${chain}`);
    const { name, group, prepare, commands, parts = 1, after, check } = cases[chain % cases.length]!;
    if (!undisturbed.has(group)) {
      const reference = join(folder, `reference ${group}`);
      const first = cases.find((other) => other.group === group)!;
      undisturbed.set(group, await runUndisturbed(first, reference, library, join(folder, 'calls')));
    }
    const { calls, ms: usualMs, content } = undisturbed.get(group)!;
    mostCalls = Math.max(mostCalls, calls);
    await prepare?.(out);
    for (const command of commands(out)) {
      // A few kills for each command, then a run to its end.
      for (let left = 1 + Math.floor(random() * 3); left > 0 && moment < moments; left--, moment++) {
        const atCall = !('missing' in library) && moment % 2 === 1;
        const at = 1 + Math.floor((random() * calls) / parts);
        const ms = Math.floor(random() * usualMs);
        const ended = await run(
          command,
          atCall ? { env: library.environment({ under: out, at, do: 'kill' }) } : { killAfterMs: ms },
        );
        const killed = ended.signal === 'SIGKILL';
        if (killed) kills++;
        if (killed && atCall) atCalls++;
        onMoment(
          `${moment + 1}: ${name} ${command[0]} ${atCall ? `at call ${at} of ${calls}` : `after ${ms} ms`}: ${killed ? 'killed' : `ended with ${ended.code}`}`,
        );
        await check?.(out);
        // It ended before the kill. The run below checks that it is complete.
        if (!killed) break;
      }
      const ended = await run(command);
      // If it was killed after its last rename, the index is complete, and the command says so.
      if (!/\[INDEX_EXISTS\]/.test(ended.stderr)) expectOk(ended);
    }
    if (after !== undefined) expectOk(await run(after(out)));
    assertEqualContent(contentOf(out), content, `${name}, chain ${chain} of seed ${seed}`);
    assert.deepEqual(beside(out), [basename(out)]);
    compared++;
    rmSync(out, { recursive: true });
  }
  const withoutCalls = 'missing' in library ? library.missing : undefined;
  return { kills, atCalls, calls: mostCalls, compared, withoutCalls };
}

interface Undisturbed {
  /** File operations. */
  readonly calls: number;
  readonly ms: number;
  readonly content: ReadonlyMap<string, Buffer | string>;
}

async function runUndisturbed(
  { prepare, commands, after }: KillCase,
  out: string,
  library: FaultLibrary | { readonly missing: string },
  countFile: string,
): Promise<Undisturbed> {
  await prepare?.(out);
  const env = 'missing' in library ? {} : library.environment({ under: out, count: countFile });
  const begun = performance.now();
  for (const command of commands(out)) expectOk(await run(command, { env }));
  const ms = performance.now() - begun;
  const calls = 'missing' in library ? 0 : library.count(countFile);
  if (after !== undefined) expectOk(await run(after(out)));
  return { calls, ms, content: contentOf(out) };
}

function corpusText(count: number, random: () => number): string {
  const words = Array.from({ length: 500 }, (_, i) => `word${i.toString(36)}`);
  return Array.from({ length: count }, (_, i) => {
    const text = Array.from({ length: 5 + Math.floor(random() * 60) }, () => words[Math.floor(random() * 500)]).join(
      ' ',
    );
    const columns = {
      ...(i % 3 === 0 ? {} : { source: `s${i % 50}` }),
      meta: i % 5 === 0 ? [] : [{ size: i }, { size: -i }],
    };
    return `${JSON.stringify({ id: i % 97 === 0 ? 'again' : `p${i}`, contents: `"T${i}"\n${text}`, ...columns })}\n`;
  }).join('');
}

/** The index, and the folders beside it that a build left. */
function beside(out: string): string[] {
  return readdirSync(dirname(out)).filter((name) => name === basename(out) || name.startsWith(`${basename(out)}.`));
}

/** The content of every file by its path: its bytes, or the documents of a passage file, whose bytes depend on the build. */
export function contentOf(index: string): Map<string, Buffer | string> {
  const content = new Map<string, Buffer | string>();
  const walk = (folder: string): void => {
    for (const name of readdirSync(folder).sort()) {
      const path = join(folder, name);
      if (statSync(path).isDirectory()) walk(path);
      else content.set(relative(index, path), name.endsWith('.sqlite') ? documentsOf(path) : readFileSync(path));
    }
  };
  walk(index);
  return content;
}

function documentsOf(path: string): string {
  const file = new PassageFile(path);
  try {
    return [...file.documents(), ...Array.from(file.idsInOrder(), ({ id, row }) => `${row} ${id}`), file.sha256].join(
      '\n',
    );
  } finally {
    file.close();
  }
}

export function assertEqualContent(
  found: ReadonlyMap<string, Buffer | string>,
  expected: ReadonlyMap<string, Buffer | string>,
  what: string,
): void {
  assert.deepEqual([...found.keys()], [...expected.keys()], what);
  for (const [path, content] of expected) assert.ok(sameContent(found.get(path)!, content), `${what}: ${path} differs`);
}

function sameContent(a: Buffer | string, b: Buffer | string): boolean {
  return typeof a === 'string' || typeof b === 'string' ? a === b : a.equals(b);
}
