import { formatCount } from '../../src/base/format.ts';
import { closeAll } from '../../src/base/system/close-all.ts';
import { PartialFile } from '../../src/base/system/partial-file.ts';
import { checkUtilities } from '../../training/agentic-r/check-utilities.ts';
import * as option from '../options/option.ts';
import { EXIT } from '../program/command.ts';
import { defineAction } from './action.ts';
import { openUtilities, UTILITY_OPTIONS, utilityLines } from './utility-options.ts';

/** Whether utilities that came back are complete. */
export const checkAction = defineAction({
  arguments: ['candidates'],
  options: {
    ...UTILITY_OPTIONS,
    missing: option.text(
      'FILE',
      'For check: write the rounds that have to be judged again, {"id", "round_index", "problem"} a line. An existing file is replaced.',
    ),
  },
  async run({ options, positionals, signal, out: print, note }) {
    const [candidates] = positionals;
    const files = await openUtilities(options, signal);
    const missing = options.missing === undefined ? undefined : await PartialFile.create(options.missing, true);
    let open = 0;
    try {
      const counts = await checkUtilities(candidates!, files, {
        onOpen: async (round) => {
          open += 1;
          await missing?.write(`${JSON.stringify(round)}\n`);
        },
        signal,
      });
      await missing?.publish();
      if (options.json) print(JSON.stringify({ ...counts, open }));
      else for (const line of utilityLines(counts)) print(line);
      const unknown = (counts.local?.unknown ?? 0) + (counts.global?.unknown ?? 0);
      if (open > 0) note(`${formatCount(open)} rounds have to be judged again.`);
      return open + unknown + counts.repeatedRounds > 0 ? EXIT.problems : EXIT.ok;
    } finally {
      await missing?.discard();
      await closeAll(files.local, files.global);
    }
  },
});
