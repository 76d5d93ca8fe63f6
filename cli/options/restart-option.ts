import * as option from './option.ts';

/** The option of every command that resumes an output: `trawl search --queries`, `trawl mine` and `trawl agentic-r candidates`. */
export const RESTART_OPTION = option.flag(
  'Begin again: drop what an unfinished run with the same --out left, and replace a finished output.',
);
