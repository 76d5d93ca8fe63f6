import assert from 'node:assert/strict';
import { cpSync, existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { removePassages } from '../../../indexer/update/remove-passages.ts';
import { openIndexDirectory } from '../../../src/search/opening/index-directory.ts';
import { faultLibrary } from '../../helpers/fault-library.ts';
import { expectOk, runCommand } from '../../helpers/run-command.ts';
import { buildSampleIndex } from '../../helpers/sample-index.ts';
import { seededRandom } from '../../helpers/seeded-random.ts';
import { contentsOf } from './sync-helpers.ts';

export interface KillSyncsTest {
  /** Folder to work in. */
  readonly folder: string;
  /** Number of kills. */
  readonly moments: number;
  readonly seed: number;
  readonly onMoment?: (text: string) => void;
}

export interface KillSyncsResult {
  readonly kills: number;
  /** Of these, kills at a file operation. */
  readonly atCalls: number;
  /** File operations of an undisturbed copy; the most of all cases. */
  readonly calls: number;
  readonly compared: number;
  readonly withoutCalls: string | undefined;
}

/** What is at the destination before: nothing, a copy of the old generation, or the old generation as a plain folder. */
const CASES = ['nothing', 'copy', 'folder'] as const;

/**
 * Kills `trawl sync` at random file operations or times. After every kill the destination must be the whole old or the whole new
 * index (a plain folder may also be away for the moment of its replacement); the next run must complete the copy.
 */
export async function killSyncs({
  folder,
  moments,
  seed,
  onMoment = () => undefined,
}: KillSyncsTest): Promise<KillSyncsResult> {
  const random = seededRandom(seed);
  const library = faultLibrary(folder);
  const old = await buildSampleIndex(folder);
  const next = join(folder, 'next');
  cpSync(old, next, { recursive: true });
  await removePassages(next, ['s-0001', 's-0002'], {});
  const [before, after] = [contentsOf(old), contentsOf(next)];
  const prepare = async (name: string, chain: number | string): Promise<string> => {
    const own = join(folder, `chain${chain}`);
    mkdirSync(own);
    const to = join(own, 'copy');
    if (name === 'copy') expectOk(await runCommand(['sync', old, to]));
    if (name === 'folder') cpSync(old, to, { recursive: true });
    return to;
  };
  const calls = new Map<string, { calls: number; ms: number }>();
  for (const name of CASES) {
    const to = await prepare(name, name);
    const count = join(folder, 'calls');
    const begun = performance.now();
    const env = 'missing' in library ? {} : library.environment({ under: to, count });
    expectOk(await runCommand(['sync', next, to], { env }));
    calls.set(name, { calls: 'missing' in library ? 0 : library.count(count), ms: performance.now() - begun });
  }
  let [kills, atCalls, compared] = [0, 0, 0];
  let moment = 0;
  for (let chain = 0; moment < moments; chain++) {
    const name = CASES[chain % CASES.length]!;
    const usual = calls.get(name)!;
    const to = await prepare(name, chain);
    for (let left = 1 + Math.floor(random() * 3); left > 0 && moment < moments; left--, moment++) {
      const atCall = !('missing' in library) && moment % 4 !== 3;
      const at = 1 + Math.floor(random() * usual.calls);
      const ms = Math.floor(random() * usual.ms);
      const ended = await runCommand(
        ['sync', next, to],
        atCall ? { env: library.environment({ under: to, at, do: 'kill' }) } : { killAfterMs: ms },
      );
      const isKilled = ended.signal === 'SIGKILL';
      if (isKilled) kills++;
      if (isKilled && atCall) atCalls++;
      onMoment(
        `${moment + 1}: ${name}, ${atCall ? `call ${at} of ${usual.calls}` : `${ms} ms`}: ${isKilled ? 'killed' : 'ended'}`,
      );
      // The destination itself, without what belongs to no generation.
      if (existsSync(to)) {
        openIndexDirectory(to);
        const found = contentsOf(to);
        const isOld = name !== 'nothing' && equal(found, before);
        assert.ok(isOld || equal(found, after), `chain ${chain} of seed ${seed}: a mixture in ${to}`);
      } else {
        const isMoved = name === 'folder' && readdirSync(`${to}.copies`).some((each) => each.startsWith('original'));
        assert.ok(name === 'nothing' || isMoved, `chain ${chain} of seed ${seed}: ${to} is lost`);
      }
      if (!isKilled) break;
    }
    expectOk(await runCommand(['sync', next, to]));
    assert.deepEqual(contentsOf(to), after, `chain ${chain} of seed ${seed}`);
    const left = readdirSync(`${to}.copies`).filter((each) => /\.partial|\.tmp/.test(each));
    assert.deepEqual(left, [], `chain ${chain} of seed ${seed}`);
    compared++;
    rmSync(join(folder, `chain${chain}`), { recursive: true });
  }
  return {
    kills,
    atCalls,
    calls: Math.max(...Array.from(calls.values(), (each) => each.calls)),
    compared,
    withoutCalls: 'missing' in library ? library.missing : undefined,
  };
}

function equal(a: Record<string, string>, b: Record<string, string>): boolean {
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => a[name] === b[name]);
}
