import type { MinimumRule } from '../../../engine/lexical/lexical-query.ts';

/**
 * Parses Elasticsearch's minimum_should_match: `2`, `-1`, `75%`, `-25%`, `3<90%`, or several conditions with spaces in between.
 * Null for a text that is none of these.
 */
export function parseMinimum(text: string): readonly MinimumRule[] | null {
  const spec = text.trim();
  if (!spec.includes('<')) {
    const rule = ruleOf(spec, -1);
    return rule && [rule];
  }
  const rules: MinimumRule[] = [];
  for (const part of spec.replace(/\s+<\s*|\s*<\s+/g, '<').split(' ')) {
    const [above = '', wanted = '', ...more] = part.split('<');
    const rule = isInteger(above) && more.length === 0 ? ruleOf(wanted.trim(), Number(above)) : null;
    if (rule === null) return null;
    rules.push(rule);
  }
  return rules;
}

function ruleOf(wanted: string, above: number): MinimumRule | null {
  const isPercent = wanted.endsWith('%');
  const number = isPercent ? wanted.slice(0, -1) : wanted;
  return isInteger(number) ? { above, count: Number(number), isPercent } : null;
}

/** What Java's Integer.parseInt accepts, in ASCII. */
function isInteger(text: string): boolean {
  return /^[+-]?\d{1,10}$/.test(text) && Number(text) >= -(2 ** 31) && Number(text) < 2 ** 31;
}
