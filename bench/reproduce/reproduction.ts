import { readAllResult } from '../all/all-file.ts';
import type { AllResult } from '../all/all-result.ts';
import { runTrawl } from '../serve/serve-index.ts';
import type { Expectation } from './expectation.ts';
import { allExpectations } from './expectations/report.ts';
import type { ReproductionRun } from './reproduction-run.ts';
import { runScript } from './run-script.ts';

/** A recorded result whose tables can be measured again. */
export interface Reproduction {
  readonly name: string;
  /** The recorded result, relative to the repository. */
  readonly file: string;
  readonly about: string;
  /** On two cores. */
  readonly time: string;
  /** Measures again, and writes the same kind of file. */
  run(run: ReproductionRun): Promise<void>;
  expectations(result: unknown): Expectation[];
}

/** A case of `trawl bench` whose `--out` is the recorded file. */
export const benchCase = (
  args: readonly string[],
  environment?: Readonly<Record<string, string>>,
): Pick<Reproduction, 'run'> => ({
  run: ({ file, signal }) => runTrawl(['bench', ...args, '--out', file], signal, environment),
});

/** A script whose `--out` is the recorded file. */
export const script = (name: string, args: readonly string[] = []): Pick<Reproduction, 'run'> => ({
  run: (run) => runScript(name, args, run),
});

/** `trawl bench all`. */
export const benchAll = (size: string): Pick<Reproduction, 'run' | 'expectations'> => ({
  async run({ file, signal }) {
    const report = file.replace(/\.json$/, '.html');
    await runTrawl(['bench', 'all', '--size', size, '--report', report, '--out', file, '--restart'], signal);
    await readAllResult(file);
  },
  expectations: (result) => allExpectations(result as AllResult),
});
