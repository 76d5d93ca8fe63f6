// Chooses test files, runs each as a process of its own, and prints what they say and which took longest.
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { relative } from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { root } from './setup.mjs';

/** Files that a whole run names with their durations. */
const SLOWEST = 15;

/** Whether the path of a file within the project contains one of the words. */
export function hasWord(file, words) {
  return words.some((word) => relative(root, file).includes(word));
}

/**
 * The files by name, but first those that take longest by the clock, so that no core waits for them at the end.
 *
 * @throws Error if one of the longest is no file: it has moved.
 */
export function longestFirst(files, longest) {
  const gone = longest.filter((file) => !existsSync(file));
  if (gone.length > 0)
    throw new Error(`The list of files that start first names ${gone.join(', ')}, which is not there.`);
  return [...files].sort((a, b) => longest.includes(b) - longest.includes(a) || (a < b ? -1 : 1));
}

/** Test files and what came of them. */
export class TestFiles {
  failed = false;
  /** Milliseconds of the tests of a file. */
  #durations = new Map();

  /** Resolves when all tests of the files have ended. */
  async run(files, concurrency) {
    if (files.length === 0) return;
    const tests = run({ files, concurrency });
    tests.on('test:fail', ({ todo }) => {
      if (todo === undefined || todo === false) this.failed = true;
    });
    for (const event of ['test:pass', 'test:fail']) {
      tests.on(event, ({ file, nesting, details }) => {
        if (nesting === 0 && file !== undefined)
          this.#durations.set(file, (this.#durations.get(file) ?? 0) + details.duration_ms);
      });
    }
    const output = tests.compose(new spec());
    output.pipe(process.stdout, { end: false });
    await once(output, 'end');
  }

  printSlowest() {
    const slowest = [...this.#durations].sort(([, a], [, b]) => b - a).slice(0, SLOWEST);
    const lines = slowest.map(([file, ms]) => `  ${(ms / 1000).toFixed(1).padStart(5)} s  ${relative(root, file)}`);
    process.stdout.write(`The slowest files:\n${lines.join('\n')}\n`);
  }
}
