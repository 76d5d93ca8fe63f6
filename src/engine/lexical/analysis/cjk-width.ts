/**
 * Folds width as Lucene's CJKWidthFilter does: full-width ASCII (U+FF01 to U+FF5E) becomes ASCII, half-width katakana
 * (U+FF65 to U+FF9F) becomes katakana. A half-width sound mark is composed with the katakana before it.
 */
export function foldWidth(term: string): string {
  let result = '';
  for (let i = 0; i < term.length; i++) {
    const unit = term.charCodeAt(i);
    if (unit >= 0xff01 && unit <= 0xff5e) {
      result += String.fromCharCode(unit - 0xfee0);
    } else if (unit >= 0xff65 && unit <= 0xff9f) {
      const composed = composedWith(result, unit);
      result = composed === undefined ? result + KATAKANA[unit - 0xff65]! : result.slice(0, -1) + composed;
    } else {
      result += term[i]!;
    }
  }
  return result;
}

/** Full-width forms of U+FF65 to U+FF9F; the sound marks become combining characters. */
const KATAKANA =
  '・ヲァィゥェォャュョッーアイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワン\u3099\u309a';

const VOICED = new Map(
  [...'カキクケコサシスセソタチツテトハヒフヘホウワヰヱヲヽ'].map((base, i) => [
    base,
    [...'ガギグゲゴザジズゼゾダヂヅデドバビブベボヴヷヸヹヺヾ'][i]!,
  ]),
);
const SEMI_VOICED = new Map([...'ハヒフヘホ'].map((base, i) => [base, [...'パピプペポ'][i]!]));

function composedWith(before: string, mark: number): string | undefined {
  const last = before.at(-1);
  if (last === undefined) return undefined;
  if (mark === 0xff9e) return VOICED.get(last);
  return mark === 0xff9f ? SEMI_VOICED.get(last) : undefined;
}
