import { formatTable, wrapParagraph } from '../../src/base/format.ts';
import { hitFields } from '../../src/index/passages/document-fields.ts';
import type { Hit } from '../../src/search/calls/query-outcome.ts';
import type { HybridPlace, HybridPlaces } from '../../src/search/hybrid/hybrid-fusion.ts';
import type { ExplainedTerm } from '../../src/search/retriever.ts';
import { lines } from '../output/lines.ts';

export interface ShownHit {
  readonly hit: Hit;
  /** With `--explain`. */
  readonly terms?: readonly ExplainedTerm[];
  /** Hybrid: where the lists have the passage; with `--explain` with the part of each list. */
  readonly places?: ExplainedPlaces;
}

interface ExplainedPlaces extends HybridPlaces {
  readonly dense: (HybridPlace & { readonly part?: number }) | null;
  readonly bm25: (HybridPlace & { readonly part?: number }) | null;
}

/** A hit as JSON, with the document as it stands in the corpus. */
export function hitJson({ hit, terms, places }: ShownHit): string {
  const { score, firstStage, source, document } = hit;
  const facts = {
    index: source?.index,
    row: source?.row ?? hit.row,
    score,
    indexScore: source?.score,
    firstStage,
    ...places,
    terms,
  };
  return `${JSON.stringify(facts).slice(0, -1)},"document":${document}}`;
}

/** A hit as lines for people. In a pipe (`width` undefined), every passage is one line. */
export function hitLines({ hit, terms, places }: ShownHit, rank: number, width: number | undefined): string[] {
  const { source, firstStage: first } = hit;
  const { id, title, text } = hitFields(hit.document, source?.row ?? hit.row);
  const passage = text.trim().replaceAll(/\s+/g, ' ');
  const where = source === undefined ? '' : `, index ${source.index}`;
  const before = first === undefined ? '' : `, found as ${first.rank} with ${first.score.toFixed(4)}`;
  return lines(
    `${rank}. ${hit.score.toFixed(4)}  ${title ?? ''}  (id ${id}${where}${before}${placesText(places)})`,
    terms !== undefined && termTable(terms),
    ...(width === undefined ? [`   ${passage}`] : [...wrapParagraph(passage, { indent: 3, width }), '']),
  );
}

/** Where the lists of a hybrid search have the passage, and what they add to its score. */
function placesText(places: ExplainedPlaces | undefined): string {
  if (places === undefined) return '';
  const text = (place: ExplainedPlaces['dense']): string => {
    if (place === null) return '–';
    return place.part === undefined ? `${place.rank}` : `${place.rank} adds ${place.part.toFixed(4)}`;
  };
  return `; dense ${text(places.dense)}, bm25 ${text(places.bm25)}`;
}

/** The terms of a hit's score as a table, indented like its text. */
function termTable(terms: readonly ExplainedTerm[]): string {
  const rows = [
    ['term', 'boost', 'passages', 'score'],
    ...terms.map(({ term, field, boost, documentFrequency, score }) => [
      field === 'contents' ? term : `${field}: ${term}`,
      String(boost),
      String(documentFrequency),
      score.toFixed(4),
    ]),
  ];
  return formatTable(rows)
    .map((line) => `     ${line}`)
    .join('\n');
}
