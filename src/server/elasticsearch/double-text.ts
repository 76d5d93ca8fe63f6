/** A float64 as Java's Double.toString writes it since version 19, with the fewest digits: `3.0`, `0.001`, `1.0E-5`, `1.2E10`. */
export function doubleText(value: number): string {
  if (value === 0) return Object.is(value, -0) ? '-0.0' : '0.0';
  const [mantissa = '', exponent = ''] = value.toExponential().split('e');
  const size = Math.abs(value);
  if (size >= 1e-3 && size < 1e7) return Number.isInteger(value) ? `${value}.0` : String(value);
  return `${mantissa.includes('.') ? mantissa : `${mantissa}.0`}E${Number(exponent)}`;
}
