import { usageError } from '../../src/base/errors.ts';
import type { OptionTable } from '../../src/base/options/option-spec.ts';
import { type RolloutReport, rollOut } from '../../training/rollout/roll-out.ts';
import { rolloutProbe } from '../../training/rollout/rollout-probe.ts';
import { RolloutServer } from '../../training/rollout/rollout-server.ts';
import { readApiKey } from '../options/api-key.ts';
import { actionOf, requiredOption } from '../options/checks.ts';
import { gatesOption } from '../options/numbers.ts';
import * as option from '../options/option.ts';
import { QUERY_FORM_OPTION } from '../options/query-form.ts';
import { type CommandContext, defineCommand, EXIT } from '../program/command.ts';

const ACTIONS = ['rollout'] as const;

const options = {
  index: option.text('NAME', 'The index, by its name on the servers. Required.'),
  to: option.text(
    'FOLDER',
    'The folder to open, as the servers see it. A restarted server opens the folder of its command line, so a link there is better. Default: that folder of each server.',
  ),
  back: option.flag(
    'Go back to the generation that the servers had open before the current one, or to --generation, which is required if they went back before.',
  ),
  generation: option.text(
    'HASH',
    'The generation to expect, else nothing is swapped. With --back: that to go back to, if the servers do not agree on one.',
  ),
  eval: option.text(
    'PATH',
    'Questions (as for trawl eval) that a swapped server must answer. With gold_ids or --qrels their recall@k is measured, before and after; without, only --max-changed and --max-replaced limit the answers, and none may become empty.',
  ),
  qrels: option.text('FILE', 'Judgements (TREC qrels or BEIR tsv) to use instead of gold_ids.'),
  'query-form': QUERY_FORM_OPTION,
  'recall-k': option.integer({ min: 1, max: 1000, default: 10 }, 'The k of the recall that is checked.'),
  'min-recall': option.text('R', 'Take the servers back if recall@k is below this, from 0 to 1.'),
  'max-recall-drop': option.text(
    { value: 'R', default: '0' },
    'Take the servers back if recall@k is more than R below the index before. 1 accepts any loss.',
  ),
  'changed-k': option.integer({ min: 1, max: 1000, default: 3 }, 'Passages of an answer that are compared.'),
  'max-changed': option.text(
    'SHARE',
    'Take the servers back if more than this share of the answers has other passages among the first --changed-k.',
  ),
  'max-replaced': option.text(
    'SHARE',
    'Take the servers back if more than this share of the first --changed-k passages are others.',
  ),
  stay: option.flag('At a failure only stop: leave the servers that were swapped before it with the new index.'),
  'one-way': option.flag('Also swap where the old index cannot be opened again, because the new one took its folder.'),
  'dry-run': option.flag('Change nothing; ask the servers, and print what each would open.'),
  'key-file': option.text('FILE', 'File with an API key of the scope admin. Default: the variable TRAWL_ADMIN_KEY.'),
} as const satisfies OptionTable;

type Context = CommandContext<typeof options>;

export const adminCommand = defineCommand({
  name: 'admin',
  summary: 'swap an index on several servers, one after another, and back',
  description:
    'rollout: every server opens its index again, one after another, while all of them answer. First all servers are asked: each ' +
    'must be ready, and find the same generation. A server must then answer with the new generation, be ready, and pass the limits ' +
    'on the questions of --eval, before the next one is swapped. At the first failure all that were swapped are taken back. ' +
    'Stopped or repeated, the same command completes the rest; servers that have the index already are left alone.\n\n' +
    'The new index must be on each machine or on a shared disk, beside the old one, as trawl sync puts it there. --back swaps to ' +
    'the generation before, in the same way. Exit code 3: a limit or a failure stopped it after a server was changed; 1: it was refused before.\n\n' +
    'With --json: {"state": "done", "current", "planned", "taken back" or "stopped", "generation", "servers": [{"url", "state", ' +
    '"before", "from", "folder", "seconds", "figures", "problem"}]}.',
  positionals: {
    usage: '<action> <url...>',
    help: { action: 'rollout', 'url...': 'The servers: http://HOST:PORT.' },
    words: ACTIONS,
    max: 1000,
  },
  options,
  examples: [
    'trawl admin rollout http://a:8000 http://b:8000 http://c:8000 --index wiki18',
    'trawl admin rollout http://a:8000 http://b:8000 --index wiki18 --to /shared/indexes/wiki18-next --eval heldout.jsonl --min-recall 0.7',
    'trawl admin rollout http://a:8000 http://b:8000 --index wiki18 --back',
  ],
  resumable: true,
  async run(context) {
    const { options, positionals, signal, out, note } = context;
    const [action, ...urls] = positionals;
    actionOf('admin', ACTIONS, action);
    const { back, to, generation } = options;
    const index = requiredOption('index', options.index, 'the name of the index on the servers');
    if (back && to !== undefined) throw usageError('--back finds the folders itself; --to cannot be given, too.');
    const apiKey = readApiKey(options['key-file'], { variable: 'TRAWL_ADMIN_KEY' });
    const servers = urls.map((url) => new RolloutServer(url, index, apiKey));
    const repeated = servers.find(({ url }, i) => servers.findIndex((other) => other.url === url) < i);
    if (repeated !== undefined) throw usageError(`${repeated.url} is given twice.`);
    const report = await rollOut({
      servers,
      to,
      back: back ? { generation } : undefined,
      expected: generation,
      probe: await probeOf(context),
      dryRun: options['dry-run'],
      stay: options.stay,
      oneWay: options['one-way'],
      signal,
      onStep: note,
    });
    if (options.json) out(JSON.stringify(report));
    else for (const line of linesOf(report)) out(line);
    return report.state === 'taken back' || report.state === 'stopped' ? EXIT.problems : EXIT.ok;
  },
});

async function probeOf({ options, given, signal }: Context) {
  if (options.eval === undefined) {
    const limit = ['qrels', 'min-recall', 'max-recall-drop', 'max-changed', 'max-replaced'].find((name) =>
      given.has(name),
    );
    if (limit !== undefined) throw usageError(`--${limit} needs questions: --eval PATH.`);
    return undefined;
  }
  return rolloutProbe({
    questions: options.eval,
    qrels: options.qrels,
    form: options['query-form'],
    recallK: options['recall-k'],
    changedK: options['changed-k'],
    gates: gatesOption(options),
    isRecallDropGiven: given.has('max-recall-drop'),
    signal,
  });
}

/** What leads out of a rollout that was stopped. */
function wayBack(servers: RolloutReport['servers'], generation: string): string {
  const changed = servers.filter(({ before }) => before !== null && before !== generation);
  const generations = [...new Set(changed.map(({ before }) => before))];
  const back = generations.map((each) => `--back --generation ${each}`).join(' or ');
  const lost = servers.find(({ state, from }) => state === 'not taken back' && from !== null);
  return (
    (back === '' ? 'Repair the cause and run the same command again.' : `Go back with ${back} in place of --to.`) +
    (lost === undefined
      ? ''
      : ` A server that was restarted since has forgotten the old index: name its folder, as --to ${lost.from}, without --back.`)
  );
}

function linesOf({ state, generation, servers }: RolloutReport): string[] {
  const said = {
    done: `all servers answer with generation ${generation}`,
    current: `all servers answered with generation ${generation} before; nothing to do`,
    planned: `generation ${generation} would be opened`,
    'taken back': `generation ${generation} was refused; the servers answer as before`,
    stopped: `stopped: not all servers answer with generation ${generation}. ${wayBack(servers, generation)}`,
  };
  return [
    ...servers.map(({ url, state, before, from, folder, seconds, figures, problem }) =>
      [
        `${url}: ${state}, before ${before ?? 'none'}${from === null ? '' : ` in ${from}`}; ${folder}`,
        seconds === null ? '' : `${seconds} s`,
        Object.entries(figures ?? {})
          .map(([name, value]) => `${name} ${value === null ? 'unknown' : value.toFixed(4)}`)
          .join(', '),
        problem ?? '',
      ]
        .filter((part) => part !== '')
        .join('; '),
    ),
    said[state],
  ];
}
