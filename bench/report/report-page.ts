import { ALL_STAGES, type AllResult, resultOf } from '../all/all-result.ts';
import type { MachineFacts } from '../environment.ts';
import { buildSection, encoderSection } from './build-sections.ts';
import * as figure from './figures.ts';
import { element, escaped, joined, type Markup, textElement } from './markup.ts';
import { facts, list, section, tiles } from './report-parts.ts';
import { REPORT_STYLE } from './report-style.ts';
import { plain } from './roofline-plot.ts';
import { approximateSection, flatSections, questionsSection } from './search-sections.ts';
import { serveSections } from './server-sections.ts';
import { threadsInWords } from './threads-in-words.ts';

/** Above this load average, other work disturbs the times. */
const QUIET_LOAD = 0.5;

/** The report as one HTML page that needs no other file. `json`: name of the file with the raw figures. */
export function reportPage(all: AllResult, json: string): string {
  const flat = resultOf(all, 'flat');
  const machine = resultOf(all, 'machine');
  const serve = resultOf(all, 'serve');
  const embed = resultOf(all, 'embed');
  const index = resultOf(all, 'index');
  const approximate = resultOf(all, 'approximate');
  const questions = resultOf(all, 'questions');
  const environments = environmentsOf(all);
  const first = environments[0]?.environment;
  const body = joined([
    textElement('h1', 'Trawl benchmark report'),
    textElement('p', headline(all, first), { class: 'muted' }),
    disturbance(environments),
    tiles(summary(all)),
    ...(serve === undefined ? [] : serveSections(serve)),
    ...(approximate === undefined ? [] : [approximateSection(approximate)]),
    ...(questions === undefined ? [] : [questionsSection(questions)]),
    ...(flat === undefined ? [] : flatSections(flat, machine)),
    ...(embed === undefined ? [] : [encoderSection(embed)]),
    ...(index === undefined ? [] : [buildSection(index)]),
    machineSection(all, environments),
    section('Left out', 'What was not measured, and why.', list(leftOut(all))),
    element(
      'section',
      {},
      textElement('h2', 'Raw figures'),
      element(
        'p',
        {},
        { text: 'Every figure of this page is in ' },
        textElement('code', json),
        {
          text: '. The pages in bench/ of the project define the fields. To draw the page again: ',
        },
        textElement('code', `trawl bench all --from ${json} --report report.html`),
      ),
    ),
  ]);
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${escaped(`Trawl benchmark report, ${all.size}`)}</title><style>${REPORT_STYLE}</style></head>
<body><main>${body}</main></body></html>
`;
}

interface StageFacts {
  readonly stage: string;
  readonly seconds: number;
  readonly environment: MachineFacts;
}

function environmentsOf(all: AllResult): StageFacts[] {
  return ALL_STAGES.flatMap((stage) => {
    const outcome = all.stages[stage];
    return outcome !== undefined && 'result' in outcome
      ? [{ stage, seconds: outcome.seconds, environment: outcome.environment }]
      : [];
  });
}

function headline({ size, threads }: AllResult, facts?: MachineFacts): string {
  if (facts === undefined) return `Size ${size}. Nothing was measured.`;
  const { date, processor, cores, memoryBytes, trawl } = facts;
  return `${date.slice(0, 10)} · size ${size} · Trawl ${trawl} · ${processor}, ${cores} cores (${threads} used), ${figure.bytes(memoryBytes)} of memory`;
}

function disturbance(environments: readonly StageFacts[]): Markup {
  const disturbed = environments.filter(({ environment }) => environment.loadBefore > QUIET_LOAD);
  // Each stage follows another one, so only the first tells of other work for certain.
  if (environments[0] === undefined || environments[0].environment.loadBefore <= QUIET_LOAD) return '' as Markup;
  const highest = Math.max(...disturbed.map(({ environment }) => environment.loadBefore));
  return textElement(
    'p',
    `Other programs used this machine (load average up to ${highest.toFixed(1)}). The engines took turns, so ratios mean more than times here.`,
    { class: 'warning' },
  );
}

/** The figures that most readers look for. */
function summary(all: AllResult): { figure: string; text: string }[] {
  const found: { figure: string; text: string }[] = [];
  const flat = resultOf(all, 'flat')?.records ?? [];
  const lone = flat.find(({ engine, queries }) => engine === 'trawl' && queries === 1);
  const faiss = flat.filter(({ engine }) => engine === 'faiss');
  if (lone !== undefined) {
    const beside = faiss.find(({ queries }) => queries === 1);
    found.push({
      figure: figure.ms(lone.medianMs),
      text: `one exact search over ${figure.count(lone.rows)} vectors${beside === undefined ? '' : `, ${figure.times(beside.ratioToTrawl)} as fast as FAISS`}`,
    });
  }
  const most = faiss.at(-1);
  if (most !== undefined && lone !== undefined) {
    const own = flat.find(({ engine, queries }) => engine === 'trawl' && queries === most.queries)!;
    found.push({
      figure: `${plain((100 * own.residentBytes) / most.residentBytes)} %`,
      text: `of the memory of FAISS: ${figure.bytes(own.residentBytes)} in place of ${figure.bytes(most.residentBytes)}`,
    });
  }
  const serve = resultOf(all, 'serve')?.records ?? [];
  const batch = serve.find(({ load, engine }) => load === 'batch' && engine.startsWith('trawl'));
  if (batch !== undefined) {
    const ratio =
      batch.ratioToBaseline === null ? '' : `, ${figure.times(batch.ratioToBaseline)} a server like Search-R1's`;
    found.push({ figure: `${figure.rate(batch.queriesPerS)} queries/s`, text: `in a POST of 512 queries${ratio}` });
  }
  const one = serve.find(({ load, engine }) => load === 'lone' && engine.startsWith('trawl'));
  if (one !== undefined) {
    const ratio = one.ratioToBaseline === null ? '' : `, ${figure.times(one.ratioToBaseline)} as fast`;
    found.push({ figure: figure.ms(one.p50Ms), text: `one query over HTTP, with embedding (p50)${ratio}` });
  }
  return found;
}

function machineSection(all: AllResult, environments: readonly StageFacts[]): Markup {
  const first = environments[0]?.environment;
  if (first === undefined) return '' as Markup;
  const machine = resultOf(all, 'machine');
  const peaks = machine?.peaks;
  const perSecond = (value: number | null): string =>
    value === null ? 'not measured' : `${plain(value / 1e9)} × 10⁹/s`;
  const lines: (readonly [string, string])[] = [
    ['processor', `${first.processor}, ${first.cores} cores`],
    ['memory', figure.bytes(first.memoryBytes)],
    ['system', `${first.platform}, Node.js ${first.node}`],
    ...(machine === undefined
      ? []
      : [
          [
            'instruction set',
            `${machine.environment.isa} of ${machine.environment.instructionSets.join(', ')}`,
          ] as const,
        ]),
    ...(peaks === undefined || peaks === null
      ? []
      : ([
          ['memory bandwidth', `${plain(peaks.readBytesPerS / 1e9)} GB/s, ${peaks.threads} threads reading`],
          [
            'int8 products, peak',
            `${perSecond(peaks.int8ProductsPerS)}${peaks.int8Isa === undefined ? '' : ` (${peaks.int8Isa})`}`,
          ],
          ['float32 products, peak', [perSecond(peaks.float32ProductsPerS), ...threadsInWords(peaks)].join('; ')],
        ] as const)),
    [
      'programs',
      [
        ...new Set([
          `Trawl ${first.trawl}`,
          ...environments.flatMap(({ environment }) => environment.engines.filter((name) => !name.startsWith('trawl'))),
        ]),
      ].join('; '),
    ],
    ['model', all.inputs.model],
    ['texts', `${all.inputs.corpus}; ${all.inputs.calls}`],
    [
      'stages',
      environments
        .map(
          ({ stage, seconds, environment }) =>
            `${stage} ${seconds.toFixed(0)} s (load ${environment.loadBefore.toFixed(1)} before)`,
        )
        .join(', '),
    ],
  ];
  return section('Machine and versions', 'What the figures were measured with.', facts(lines));
}

function leftOut(all: AllResult): string[] {
  return ALL_STAGES.flatMap((stage) => {
    const outcome = all.stages[stage];
    if (outcome === undefined) return [`${stage}: not measured`];
    if ('failed' in outcome) return [`${stage}: ${outcome.failed}`];
    const skipped =
      'skipped' in outcome.result
        ? (outcome.result.skipped as readonly { readonly engine: string; readonly reason: string }[])
        : [];
    return skipped.map(({ engine, reason }) => `${stage}: ${engine}: ${reason}`);
  });
}
