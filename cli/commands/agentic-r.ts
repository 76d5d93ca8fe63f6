import { usageError } from '../../src/base/errors.ts';
import { candidatesAction } from '../agentic-r/candidates-action.ts';
import { checkAction } from '../agentic-r/check-action.ts';
import { constructAction } from '../agentic-r/construct-action.ts';
import { handOverAction } from '../agentic-r/hand-over-action.ts';
import { actionOf } from '../options/checks.ts';
import { type CommandContext, defineCommand } from '../program/command.ts';

/** In the order of the work. */
const ACTIONS = {
  candidates: candidatesAction,
  'hand-over': handOverAction,
  check: checkAction,
  construct: constructAction,
} as const;
type ActionName = keyof typeof ACTIONS;

const options = {
  ...candidatesAction.options,
  ...handOverAction.options,
  ...checkAction.options,
  ...constructAction.options,
} as const;

type Context = CommandContext<typeof options>;

export const agenticRCommand = defineCommand({
  name: 'agentic-r',
  summary: "make training data of trajectories by Agentic-R's steps: candidates, hand-over, check, construct",
  description:
    '`candidates` (step 2) searches the passages for every round of the trajectories that step 1 wrote. `hand-over` writes the ' +
    'rounds and their passages for the language models of steps 3-0 to 3-2, which run elsewhere. `check` compares the utilities that ' +
    'came back with the candidates; the exit code is 3 if rounds have to be judged again. `construct` (step 4) makes the rows for ' +
    "Agentic-R's fork of tevatron. docs/agentic-r.md walks through all steps and describes the files.\n\n" +
    '`candidates` can be stopped at any moment, and the same command resumes it. The other actions start anew. A round whose own query ' +
    'cannot be searched (it has no vector, or a server refuses it) has no candidates; `candidates` names such rounds and ends with exit ' +
    'code 1.\n\n' +
    'With --json: candidates prints {"out", "report", "k", "read", "written", "rounds", "dropped", "failed", "failures", "truncated", ' +
    '"short", "otherIds", "withoutText"}; hand-over {"out", "rounds", "passages", "withoutCandidates", "withoutSubanswer"}; check {"rounds", "usable", "problems", ' +
    '"noGlobalByDesign", "historyDiffers", "repeatedRounds", "local", "global", "examples", "open"}; construct {"out", "utilities", ' +
    '"dropped", "rounds", "rows", "unusedPositives", "correctNegatives", "excluded"}.',
  positionals: {
    usage: '<action> [index] <file>',
    help: {
      action: 'candidates, hand-over, check or construct.',
      index: 'For candidates and hand-over: the index directory. Not with --url.',
      file: "For candidates: the trajectories, step 1's intermediate_data.json or JSON lines of the same items. For the others: the candidates.",
    },
    words: Object.keys(ACTIONS),
    min: 1,
  },
  options,
  examples: [
    'trawl agentic-r candidates indexes/wiki18 T/trajectory/A/hotpotqa.json --out T/passage_candidates/A/hotpotqa.json',
    'trawl agentic-r candidates --url http://127.0.0.1:8000 T/trajectory/A/hotpotqa.json --out T/passage_candidates/A/hotpotqa.json',
    'trawl agentic-r hand-over indexes/wiki18 T/passage_candidates/A/hotpotqa.json --out hand-over/hotpotqa',
    'trawl agentic-r check T/passage_candidates/A/hotpotqa.json --local T/local_utility/A/hotpotqa.jsonl --global T/global_utility/A/hotpotqa.jsonl',
    'trawl agentic-r construct T/passage_candidates/A/hotpotqa.json --local T/local_utility/A/hotpotqa.jsonl --global T/global_utility/A/hotpotqa.jsonl --out rows.jsonl',
  ],
  resumable: true,
  async run(context) {
    const [given, ...positionals] = context.positionals;
    const name = actionOf('agentic-r', Object.keys(ACTIONS) as ActionName[], given);
    checkArguments(name, { ...context, positionals });
    return ACTIONS[name].run({ ...context, positionals });
  },
});

function checkArguments(name: ActionName, { options: { url }, positionals, given }: Context): void {
  const action = ACTIONS[name];
  const isServed = Object.hasOwn(action.options, 'url') && url !== undefined;
  const expected = action.arguments.filter((argument) => argument !== 'index' || !isServed);
  if (positionals.length !== expected.length) {
    const usage = expected.map((argument) => `<${argument}>`).join(' ');
    throw usageError(
      `Expected trawl agentic-r ${name} ${usage}, got ${positionals.length} arguments after ${name}. See \`trawl agentic-r --help\`.`,
    );
  }
  const misplaced = [...given].find((option) => option in options && !Object.hasOwn(action.options, option));
  if (misplaced === undefined) return;
  const owners = Object.entries(ACTIONS).flatMap(([other, own]) =>
    Object.hasOwn(own.options, misplaced) ? [other] : [],
  );
  throw usageError(`--${misplaced} has no effect on trawl agentic-r ${name}; it is an option of ${owners.join(', ')}.`);
}
