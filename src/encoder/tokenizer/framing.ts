import { type PostProcessorPart, type TemplatePiece, unsupported } from './tokenizer-file.ts';

/** Special tokens that a post-processor puts around a text: [CLS] and [SEP]. */
export interface Framing {
  readonly before: readonly number[];
  readonly after: readonly number[];
  /** Absent if it has no template for pairs. */
  readonly pair?: PairFraming;
}

/** Special tokens before, between and after two texts. Those after have the second text's type, the others 0. */
export interface PairFraming {
  readonly before: readonly number[];
  readonly between: readonly number[];
  readonly after: readonly number[];
  readonly secondType: number;
}

/** Throws MODEL_INVALID for a post-processor that does more than to put tokens around a text. */
export function openFraming(part: PostProcessorPart | null): Framing {
  if (part === null) return NOTHING;
  switch (part.type) {
    // It changes only where tokens are in the text.
    case 'ByteLevel':
      return NOTHING;
    case 'BertProcessing':
    case 'RobertaProcessing':
      return classAndSeparator(part);
    case 'TemplateProcessing':
      return templateFraming(part);
    case 'Sequence': {
      const [framing = NOTHING, ...others] = (part.processors ?? []).map(openFraming).filter((one) => one !== NOTHING);
      if (others.length === 0) return framing;
      throw unsupported('post-processor', part, ' with two processors that add tokens');
    }
    default:
      throw unsupported('post-processor', part);
  }
}

const NOTHING: Framing = { before: [], after: [], pair: { before: [], between: [], after: [], secondType: 0 } };

function classAndSeparator(part: PostProcessorPart): Framing {
  const [before, after] = [part.cls, part.sep].map((token) => {
    if (token === undefined) throw unsupported('post-processor', part, ' without cls and sep');
    return [token[1]];
  }) as [number[], number[]];
  const isBert = part.type === 'BertProcessing';
  const between = isBert ? after : [...after, ...after];
  return { before, after, pair: { before, between, after, secondType: isBert ? 1 : 0 } };
}

function templateFraming(part: PostProcessorPart): Framing {
  const { single = [], pair = [] } = part;
  const places = single.flatMap(({ Sequence }, at) => (Sequence === undefined ? [] : [at]));
  const [at = -1] = places;
  if (places.length !== 1 || single.some((piece) => typeOf(piece) !== 0)) {
    throw unsupported('post-processor', part, `: its template of a text is ${JSON.stringify(single)}`);
  }
  return { before: idsOf(single.slice(0, at)), after: idsOf(single.slice(at + 1)), pair: pairFraming() };

  function pairFraming(): PairFraming | undefined {
    const [first, second] = ['A', 'B'].map((name) => pair.findIndex(({ Sequence }) => Sequence?.id === name)) as [
      number,
      number,
    ];
    const texts = pair.filter(({ Sequence }) => Sequence !== undefined);
    if (texts.length !== 2 || first < 0 || second < first) return undefined;
    const secondType = typeOf(pair[second]!);
    if (pair.some((piece, i) => typeOf(piece) !== (i < second ? 0 : secondType))) return undefined;
    const [before, between] = [pair.slice(0, first), pair.slice(first + 1, second)].map(idsOf) as [number[], number[]];
    return { before, between, after: idsOf(pair.slice(second + 1)), secondType };
  }

  function idsOf(pieces: readonly TemplatePiece[]): number[] {
    return pieces.flatMap(({ SpecialToken }) => {
      const ids = part.special_tokens?.[SpecialToken?.id ?? '']?.ids;
      if (ids !== undefined) return ids;
      throw unsupported('post-processor', part, `: it has no ids of ${JSON.stringify(SpecialToken?.id)}`);
    });
  }
}

function typeOf({ SpecialToken, Sequence }: TemplatePiece): number {
  return (SpecialToken ?? Sequence)?.type_id ?? 0;
}
