// Runs test files, each as a process of its own, and prints what they say and which took longest.
import { once } from 'node:events';
import { relative } from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { root } from './setup.mjs';

/** Files that a whole run names with their durations. */
const SLOWEST = 15;

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
