import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readIndexManifest } from '../../src/manifest/read-manifest.ts';
import { PassageFile } from '../../src/passages/passage-file.ts';
import { openIndexDirectory } from '../../src/retrieval/index-directory.ts';
import { faultLibrary } from '../helpers/fault-library.ts';
import { seededRandom } from '../helpers/seeded-random.ts';

const PROGRAM = fileURLToPath(new URL('../../cli/trawl.js', import.meta.url));

export interface KillTest {
  /** Empty folder to work in. */
  readonly folder: string;
  /** Number of kills. */
  readonly moments: number;
  readonly seed: number;
  readonly passages: number;
  /** Kill updates of an index instead of builds. */
  readonly updates?: boolean;
  readonly onMoment?: (text: string) => void;
}

export interface KillTestResult {
  /** Kills of a running process; the others came too late. */
  readonly kills: number;
  /** Of these, kills at a file operation. */
  readonly atCalls: number;
  /** File operations of an undisturbed build. */
  readonly calls: number;
  /** Why there were no kills at file operations, if so. */
  readonly withoutCalls: string | undefined;
  /** Builds that were completed and found equal to the undisturbed one. */
  readonly compared: number;
}

interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stderr: string;
}

/**
 * Kills builds of several shards, at a random time or at a random file operation, and runs the same command again until
 * each is complete. Every index is compared with that of an undisturbed build. Builds alternate between one process, jobs
 * that are merged, and replacing an old index. Updates are of an index of two shards that lacks half of the corpus.
 */
export async function killAndResume(options: KillTest): Promise<KillTestResult> {
  const { folder, moments, seed, passages, onMoment = () => undefined } = options;
  const random = seededRandom(seed);
  const corpus = join(folder, 'corpus.jsonl');
  writeFileSync(corpus, corpusText(passages, random));
  const old = join(folder, 'old.jsonl');
  writeFileSync(old, corpusText(20, random));
  const common = ['--workers', '2', '--checkpoint-seconds', '0', '--quiet'];
  const shards = 4;
  const whole = (out: string): string[] => [
    'index',
    corpus,
    '--out',
    out,
    '--shard-rows',
    String(Math.ceil(passages / shards)),
    ...common,
  ];
  const updated = join(folder, 'updated');
  if (options.updates === true) {
    const before = join(folder, 'before.jsonl');
    writeFileSync(before, halfAndOthers(readFileSync(corpus, 'utf8'), passages, random));
    expectOk(await run(['index', before, '--out', updated, '--shard-rows', String(passages / 2), '--quiet']));
  }
  const update = (out: string): string[] => [...whole(out), '--update'];
  const library = faultLibrary(folder);
  const reference = join(folder, 'reference');
  const countFile = join(folder, 'calls');
  const counting = 'missing' in library ? {} : library.environment({ under: reference, count: countFile });
  const begun = performance.now();
  if (options.updates === true) cpSync(updated, reference, { recursive: true });
  expectOk(await run(options.updates === true ? update(reference) : whole(reference), { env: counting }));
  const usualMs = performance.now() - begun;
  const calls = 'missing' in library ? 0 : library.count(countFile);
  const expected = contentOf(reference);

  let [kills, atCalls, compared] = [0, 0, 0];
  let moment = 0;
  for (let chain = 0; moment < moments; chain++) {
    const out = join(folder, `ix${chain}`);
    const scenario =
      options.updates === true ? 'update' : (['whole', 'jobs', 'over an old index'] as const)[chain % 3]!;
    if (scenario === 'update') cpSync(updated, out, { recursive: true });
    if (scenario === 'over an old index') expectOk(await run(['index', old, '--out', out, '--quiet']));
    const commands =
      scenario === 'jobs'
        ? [
            ...Array.from({ length: shards }, (_, i) => [
              'index',
              corpus,
              '--out',
              out,
              '--shard',
              `${i}/${shards}`,
              ...common,
            ]),
            ['merge', out, '--quiet'],
          ]
        : [scenario === 'update' ? update(out) : [...whole(out), ...(scenario === 'whole' ? [] : ['--overwrite'])]];
    for (const command of commands) {
      // A few kills for each command, then a run to its end.
      for (let left = 1 + Math.floor(random() * 3); left > 0 && moment < moments; left--, moment++) {
        const atCall = !('missing' in library) && moment % 2 === 1;
        const at = 1 + Math.floor((random() * calls) / (scenario === 'jobs' ? shards : 1));
        const ms = Math.floor(random() * usualMs);
        const ended = await run(
          command,
          atCall ? { env: library.environment({ under: out, at, do: 'kill' }) } : { killAfterMs: ms },
        );
        const killed = ended.signal === 'SIGKILL';
        if (killed) kills++;
        if (killed && atCall) atCalls++;
        onMoment(
          `${moment + 1}: ${scenario} ${command[0]} ${atCall ? `at call ${at} of ${calls}` : `after ${ms} ms`}: ${killed ? 'killed' : `ended with ${ended.code}`}`,
        );
        if (scenario === 'over an old index') assertOpens(out);
        // At every moment the old or the new generation is intact.
        if (scenario === 'update') openIndexDirectory(out);
        // It ended before the kill. The run below checks that it is complete.
        if (!killed) break;
      }
      const ended = await run(command);
      // If it was killed after its last rename, the index is complete, and the command says so.
      if (!/\[INDEX_EXISTS\]/.test(ended.stderr)) expectOk(ended);
    }
    assertEqualContent(contentOf(out), expected, `${scenario}, chain ${chain} of seed ${seed}`);
    assert.deepEqual(beside(out), [basename(out)]);
    compared++;
    rmSync(out, { recursive: true });
  }
  return { kills, atCalls, calls, compared, withoutCalls: 'missing' in library ? library.missing : undefined };
}

function corpusText(count: number, random: () => number): string {
  const words = Array.from({ length: 500 }, (_, i) => `word${i.toString(36)}`);
  return Array.from({ length: count }, (_, i) => {
    const text = Array.from({ length: 5 + Math.floor(random() * 60) }, () => words[Math.floor(random() * 500)]).join(
      ' ',
    );
    return `${JSON.stringify({ id: i % 97 === 0 ? 'again' : `p${i}`, contents: `"T${i}"\n${text}` })}\n`;
  }).join('');
}

/** Half of the lines, some of them twice, and as many that the corpus does not have. */
function halfAndOthers(corpus: string, passages: number, random: () => number): string {
  const lines = corpus.split('\n').filter((line) => line !== '' && random() < 0.5);
  const others = corpusText(Math.floor(passages / 2), random)
    .split('\n')
    .slice(0, -1);
  return [...lines.flatMap((line, i) => (i % 50 === 0 ? [line, line] : [line])), ...others].join('\n');
}

async function run(
  args: readonly string[],
  { env = {}, killAfterMs }: { env?: Record<string, string>; killAfterMs?: number } = {},
): Promise<Ended> {
  const child: ChildProcess = spawn(process.execPath, [PROGRAM, ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let stderr = '';
  child.stderr!.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const timer = killAfterMs === undefined ? undefined : setTimeout(() => child.kill('SIGKILL'), killAfterMs);
  const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
  clearTimeout(timer);
  return { code, signal, stderr };
}

function expectOk({ code, signal, stderr }: Ended): void {
  assert.equal(code, 0, `ended with ${code ?? signal}: ${stderr}`);
}

/** At every moment the old or the new index exists; between the two renames of a publication, under its other name. */
function assertOpens(out: string): void {
  const aside = beside(out).find((name) => name.includes('.replaced-'));
  assert.ok(readIndexManifest(existsSync(out) ? out : join(dirname(out), aside!)).rows > 0);
}

/** The index, and the folders beside it that a build left. */
function beside(out: string): string[] {
  return readdirSync(dirname(out)).filter((name) => name === basename(out) || name.startsWith(`${basename(out)}.`));
}

/** The content of every file by its path: its bytes, or the documents of a passage file, whose bytes depend on the build. */
function contentOf(index: string): Map<string, Buffer | string> {
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

function assertEqualContent(
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
