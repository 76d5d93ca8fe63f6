/** A float64 as Java's Double.toString writes it since version 19, with the fewest digits: `3.0`, `0.001`, `1.0E-5`, `1.2E10`. */
export function doubleText(value: number): string {
  if (value === 0) return Object.is(value, -0) ? '-0.0' : '0.0';
  return javaText(value.toExponential());
}

/** The shortest decimal text that reads back as the same float32, as Java's Float.toString writes it: `7.651336`, `1.0`, `1.0E-5`. */
export function floatText(value: number): string {
  if (value === 0) return '0.0';
  // Nine significant digits tell any two float32 values apart.
  let shortest = value.toExponential(8);
  for (let digits = 0; digits < 8; digits++) {
    const text = value.toExponential(digits);
    if (Math.fround(Number(text)) !== value) continue;
    shortest = halfToEven(value, text, digits);
    break;
  }
  return javaText(shortest);
}

/** The text with an even last digit, where the value is exactly between two texts of this length: JavaScript takes the larger. */
function halfToEven(value: number, text: string, digits: number): string {
  const exact = value.toExponential(100);
  // The sign and the first digit, the point, and the other digits.
  const shortened = exact.slice(0, exact.indexOf('.') + 1 + digits);
  const rest = exact.slice(shortened.length, exact.indexOf('e'));
  const isTie = /^50*$/.test(rest) && /[02468]\.?$/.test(shortened);
  const even = `${shortened.replace(/\.$/, '')}${exact.slice(exact.indexOf('e'))}`;
  return isTie && Math.fround(Number(even)) === value ? even : text;
}

/** A number in JavaScript's exponential notation as Java writes it. */
function javaText(exponential: string): string {
  const value = Number(exponential);
  const size = Math.abs(value);
  if (size >= 1e-3 && size < 1e7) return Number.isInteger(value) ? `${value}.0` : String(value);
  const [mantissa = '', exponent = ''] = exponential.split('e');
  return `${mantissa.includes('.') ? mantissa : `${mantissa}.0`}E${Number(exponent)}`;
}
