import { TrawlError } from '../../src/base/errors.ts';
import { dpr, wiki18 } from './rules/dpr.ts';
import { flashragWords } from './rules/flashrag-words.ts';
import { ragR1 } from './rules/rag-r1.ts';
import { sentences } from './rules/sentences.ts';
import type { RuleDefinition, SplittingRule } from './rules/splitting-rule.ts';
import { tokens } from './rules/tokens.ts';
import { words } from './rules/words.ts';

const RULES: readonly RuleDefinition[] = [words, sentences, tokens, dpr, wiki18, ragR1, flashragWords];

export const RULE_NAMES: readonly string[] = RULES.flatMap(({ names }) => names);

export interface RuleOptions {
  readonly rule: string;
  /** Passage size in words, sentences or tokens, depending on the rule. */
  readonly size?: number;
  /** Words, sentences or tokens that consecutive passages share. Default 0. */
  readonly overlap?: number;
  /** Name or folder of the model whose tokens the rule `tokens` counts. */
  readonly model?: string;
}

function checkRuleOptions(
  { defaultSize, overlaps, needsModel }: RuleDefinition,
  { rule, size, overlap, model }: RuleOptions,
): void {
  const usage = (text: string): TrawlError => new TrawlError('USAGE', text);
  if (defaultSize === undefined && (size !== undefined || overlap !== undefined)) {
    const sized = RULES.filter((each) => each.defaultSize !== undefined).flatMap(({ names }) => names);
    throw usage(
      `The rule ${rule} always makes passages of 100 words without overlap. --size and --overlap only apply to the rules ${sized.join(', ')}.`,
    );
  }
  if (overlaps !== true && overlap !== undefined) {
    throw usage(`The rule ${rule} does not support --overlap. Use --rule words for overlapping passages.`);
  }
  const [actualSize, actualOverlap] = [size ?? defaultSize ?? 1, overlap ?? 0];
  if (!Number.isSafeInteger(actualSize) || actualSize < 1)
    throw usage(`--size is ${size}; it must be a whole number from 1.`);
  if (!Number.isSafeInteger(actualOverlap) || actualOverlap < 0 || actualOverlap >= actualSize) {
    throw usage(
      `--overlap is ${actualOverlap}; it must be a whole number from 0 and less than the passage size, ${actualSize}.`,
    );
  }
  if (needsModel === true && model === undefined) {
    throw usage(`The rule ${rule} counts the tokens of a model. Name the model with --model.`);
  }
  if (needsModel !== true && model !== undefined) throw usage(`--model only applies to --rule tokens, not to ${rule}.`);
}

/** Throws USAGE for invalid options and, for the rule `tokens`, the errors of `readModelFolder`. */
export async function openRule(options: RuleOptions): Promise<SplittingRule> {
  const { rule, size, overlap = 0, model } = options;
  const definition = RULES.find(({ names }) => names.includes(rule));
  if (definition === undefined) {
    throw new TrawlError('USAGE', `The rule is ${JSON.stringify(rule)}; expected one of ${RULE_NAMES.join(', ')}.`);
  }
  checkRuleOptions(definition, options);
  return definition.open({ size: size ?? definition.defaultSize ?? 1, overlap }, model);
}
