//! The Universal Scalability Law, fitted to throughput at each concurrency.

/// `X(N) = λ·N / (1 + σ·(N − 1) + κ·N·(N − 1))`.
///
/// Source: Gunther, "Guerrilla Capacity Planning" (2007), chapter 4, with the throughput of one as a
/// third parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Usl {
    /// λ: throughput at concurrency one, per second.
    pub throughput_of_one: f64,
    /// σ: contention, the share of work that is done one after the other.
    pub contention: f64,
    /// κ: coherency, what each pair of concurrent exchanges costs.
    pub coherency: f64,
    /// The share of the variance of the throughput that the fit explains, at most 1.
    pub r_squared: f64,
}

impl Usl {
    /// Throughput at concurrency `n`, per second.
    pub fn throughput(&self, n: f64) -> f64 {
        self.throughput_of_one * n / denominator([self.contention, self.coherency], n)
    }

    /// The concurrency at which throughput is highest; `None` if it never falls.
    pub fn peak(&self) -> Option<f64> {
        (self.coherency > 0.0 && self.contention < 1.0)
            .then(|| ((1.0 - self.contention) / self.coherency).sqrt())
    }

    /// The bound of throughput at any concurrency; `None` if there is none.
    pub fn ceiling(&self) -> Option<f64> {
        match self.peak() {
            Some(peak) => Some(self.throughput(peak.max(1.0))),
            None if self.contention > 0.0 => Some(self.throughput_of_one / self.contention),
            None => None,
        }
    }
}

/// Fits the law by least squares of the throughput, no parameter below zero.
///
/// - `points`: concurrency above zero and throughput per second.
///
/// `None` if there are fewer than four different concurrencies, the largest is less than twice the
/// smallest, or below two: three parameters fit anything then.
///
/// `N/X` is linear in the parameters, which gives the start; from there Levenberg and Marquardt
/// (Marquardt 1963), each step cut off at zero.
pub fn fit_usl(points: &[(f64, f64)]) -> Option<Usl> {
    let usable = |(n, x): &&(f64, f64)| n.is_finite() && x.is_finite() && *n > 0.0 && *x > 0.0;
    let points: Vec<(f64, f64)> = points.iter().filter(usable).copied().collect();
    let mut different: Vec<f64> = points.iter().map(|(n, _)| *n).collect();
    different.sort_unstable_by(f64::total_cmp);
    different.dedup_by(|a, b| (*a - *b).abs() <= 1e-9 * b.abs());
    let largest = different.last().copied().unwrap_or(0.0);
    if different.len() < 4 || largest < 2.0 * different[0] || largest < 2.0 {
        return None;
    }
    let fitted = refined(&points, start(&points)?);
    let mean = points.iter().map(|(_, x)| x).sum::<f64>() / points.len() as f64;
    let variance: f64 = points.iter().map(|(_, x)| (x - mean).powi(2)).sum();
    Some(Usl {
        throughput_of_one: fitted[0],
        contention: fitted[1],
        coherency: fitted[2],
        r_squared: if variance > 0.0 {
            1.0 - squares(&points, fitted) / variance
        } else {
            1.0
        },
    })
}

type Parameters = [f64; 3];

fn denominator([contention, coherency]: [f64; 2], n: f64) -> f64 {
    1.0 + contention * (n - 1.0) + coherency * n * (n - 1.0)
}

fn predicted([one, contention, coherency]: Parameters, n: f64) -> f64 {
    one * n / denominator([contention, coherency], n)
}

fn squares(points: &[(f64, f64)], parameters: Parameters) -> f64 {
    let residuals = points
        .iter()
        .map(|&(n, x)| (x - predicted(parameters, n)).powi(2));
    residuals.sum()
}

/// Least squares of `1 = X/N · (a + b·(N − 1) + c·N·(N − 1))`, with a = 1/λ, b = σ/λ, c = κ/λ.
fn start(points: &[(f64, f64)]) -> Option<Parameters> {
    let mut matrix = [[0.0; 3]; 3];
    let mut right = [0.0; 3];
    for &(n, x) in points {
        let weight = x / n;
        let row = [weight, weight * (n - 1.0), weight * n * (n - 1.0)];
        for (i, left) in row.iter().enumerate() {
            for (j, other) in row.iter().enumerate() {
                matrix[i][j] += left * other;
            }
            right[i] += left;
        }
    }
    let fastest = points.iter().map(|(n, x)| x / n).fold(0.0, f64::max);
    let linear = solved(matrix, right).filter(|[a, ..]| *a > 0.0);
    let parameters = linear.map_or([fastest, 0.0, 0.0], |[a, b, c]| {
        [1.0 / a, (b / a).max(0.0), (c / a).max(0.0)]
    });
    parameters
        .iter()
        .all(|value| value.is_finite())
        .then_some(parameters)
}

fn refined(points: &[(f64, f64)], mut parameters: Parameters) -> Parameters {
    const STEPS: usize = 500;

    let mut damping = 1e-3;
    let mut error = squares(points, parameters);
    for _ in 0..STEPS {
        let mut matrix = [[0.0; 3]; 3];
        let mut right = [0.0; 3];
        let [one, contention, coherency] = parameters;
        for &(n, x) in points {
            let below = denominator([contention, coherency], n);
            let slope = -one * n / (below * below);
            let gradient = [n / below, slope * (n - 1.0), slope * n * (n - 1.0)];
            let residual = x - one * n / below;
            for (i, left) in gradient.iter().enumerate() {
                for (j, other) in gradient.iter().enumerate() {
                    matrix[i][j] += left * other;
                }
                right[i] += left * residual;
            }
        }
        for (i, row) in matrix.iter_mut().enumerate() {
            row[i] *= 1.0 + damping;
        }
        let Some(step) = solved(matrix, right) else {
            break;
        };
        let mut next = parameters;
        for (value, change) in next.iter_mut().zip(step) {
            *value = (*value + change).max(0.0);
        }
        let next_error = squares(points, next);
        if next_error.is_finite() && next_error < error {
            let gained = error - next_error;
            (parameters, error) = (next, next_error);
            damping = (damping / 10.0).max(1e-12);
            if gained <= 1e-14 * error {
                break;
            }
        } else {
            damping *= 10.0;
            if damping > 1e12 {
                break;
            }
        }
    }
    parameters
}

/// Gauss's elimination with pivots; `None` if the matrix is singular.
fn solved(mut matrix: [[f64; 3]; 3], mut right: [f64; 3]) -> Option<[f64; 3]> {
    for column in 0..3 {
        let pivot = (column..3)
            .max_by(|&a, &b| matrix[a][column].abs().total_cmp(&matrix[b][column].abs()))?;
        matrix.swap(column, pivot);
        right.swap(column, pivot);
        if matrix[column][column].abs() < 1e-300 {
            return None;
        }
        for row in column + 1..3 {
            let factor = matrix[row][column] / matrix[column][column];
            let above = matrix[column];
            for (value, above) in matrix[row].iter_mut().zip(above) {
                *value -= factor * above;
            }
            right[row] -= factor * right[column];
        }
    }
    let mut solution = [0.0; 3];
    for row in (0..3).rev() {
        let known: f64 = (row + 1..3).map(|at| matrix[row][at] * solution[at]).sum();
        solution[row] = (right[row] - known) / matrix[row][row];
    }
    solution
        .iter()
        .all(|value| value.is_finite())
        .then_some(solution)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A published series with its published fit: a Cisco benchmark, in the examples of usl4j, where
    /// σ = 0.02671591, κ = 7.690945e-4, λ = 995.6486.
    const CISCO: [f64; 32] = [
        955.16, 1878.91, 2688.01, 3548.68, 4315.54, 5130.43, 5931.37, 6531.08, 7219.8, 7867.61,
        8278.71, 8646.7, 9047.84, 9426.55, 9645.37, 9897.24, 10097.6, 10240.5, 10532.39, 10798.52,
        11151.43, 11518.63, 11806.0, 12089.37, 12075.41, 12177.29, 12211.41, 12158.93, 12155.27,
        12118.04, 12140.4, 12074.39,
    ];

    fn near(value: f64, expected: f64, share: f64) {
        assert!(
            (value - expected).abs() <= expected.abs() * share,
            "{value} for {expected}"
        );
    }

    #[test]
    fn a_published_series_has_its_published_fit() {
        let points: Vec<_> = (1..).map(f64::from).zip(CISCO).collect();
        let usl = fit_usl(&points).unwrap();
        near(usl.contention, 0.026_715_91, 1e-4);
        near(usl.coherency, 7.690_945e-4, 1e-4);
        near(usl.throughput_of_one, 995.6486, 1e-5);
        near(usl.peak().unwrap(), 35.57, 1e-2);
        assert!(usl.r_squared > 0.99);
    }

    #[test]
    fn what_follows_the_law_is_found_again() {
        for (contention, coherency) in [
            (0.0, 0.0),
            (0.05, 0.0),
            (0.0, 1e-4),
            (0.1, 2e-3),
            (0.9, 0.0),
        ] {
            let truth = Usl {
                throughput_of_one: 4000.0,
                contention,
                coherency,
                r_squared: 1.0,
            };
            // Below one as well: little load has a concurrency of less than one.
            let points: Vec<_> = [0.1, 0.5, 1.0, 3.0, 9.0, 30.0, 100.0]
                .map(|n| (n, truth.throughput(n)))
                .to_vec();
            let usl = fit_usl(&points).unwrap();
            assert!((usl.contention - contention).abs() < 1e-4, "{usl:?}");
            assert!((usl.coherency - coherency).abs() < 1e-6, "{usl:?}");
            near(usl.throughput_of_one, 4000.0, 1e-3);
        }
    }

    #[test]
    fn the_ceiling_is_the_peak_or_the_asymptote() {
        let mut usl = Usl {
            throughput_of_one: 100.0,
            contention: 0.1,
            coherency: 0.0,
            r_squared: 1.0,
        };
        near(usl.ceiling().unwrap(), 1000.0, 1e-12);
        usl.contention = 0.0;
        assert_eq!(usl.ceiling(), None);
        usl.coherency = 0.01;
        near(usl.peak().unwrap(), 10.0, 1e-12);
        near(usl.ceiling().unwrap(), 1000.0 / 1.9, 1e-12);
    }

    #[test]
    fn too_little_is_not_fitted() {
        assert_eq!(fit_usl(&[]), None);
        assert_eq!(fit_usl(&[(1.0, 10.0), (2.0, 20.0), (3.0, 30.0)]), None);
        assert_eq!(
            fit_usl(&[(1.0, 1.0), (1.1, 1.1), (1.2, 1.2), (1.3, 1.3)]),
            None
        );
        let idle = [(0.1, 1.0), (0.2, 2.0), (0.4, 3.0), (0.8, 4.0), (1.6, 5.0)];
        assert_eq!(fit_usl(&idle), None);
        assert_eq!(fit_usl(&[(f64::NAN, 1.0); 9]), None);
    }
}
