use super::*;

fn number(value: f64) -> String {
    format!("{value}")
}

fn plot(points: Vec<(f64, Option<f64>)>, x: Axis, y: Axis) -> Plot {
    Plot {
        title: "a <plot> & \"more\"".to_owned(),
        x,
        across: "things",
        y,
        lines: vec![Line {
            label: "line".to_owned(),
            points,
            ..Line::default()
        }],
        shaded: vec![(0.0, 1.5)],
        bands: Vec::new(),
    }
}

#[test]
fn a_line_has_axes_with_round_numbers_and_gaps() {
    let points = vec![
        (1.0, Some(3.0)),
        (2.0, None),
        (3.0, Some(39.0)),
        (4.0, Some(12.0)),
    ];
    insta::assert_snapshot!(
        plot(points, Axis::Time(number), Axis::Linear(number))
            .svg()
            .replace('>', ">\n")
    );
}

#[test]
fn lines_that_come_first_lie_above_the_others() {
    let line = |label: &str| Line {
        label: label.to_owned(),
        points: vec![(1.0, Some(3.0)), (4.0, Some(12.0))],
        ..Line::default()
    };
    let svg = Plot {
        lines: vec![line("p99"), line("max")],
        ..plot(Vec::new(), Axis::Time(number), Axis::Linear(number))
    }
    .svg();
    let [above, below] = ["class=\"line s0\"", "class=\"line s1\""].map(|it| svg.find(it));
    assert!(below.is_some() && below < above, "{svg}");
}

#[test]
fn an_axis_without_a_name_leaves_no_room_for_it() {
    let points = vec![(1.0, Some(3.0)), (4.0, Some(12.0))];
    let named = plot(points.clone(), Axis::Time(number), Axis::Linear(number));
    let unnamed = Plot {
        across: "",
        ..plot(points, Axis::Time(number), Axis::Linear(number))
    };
    let axis = |plot: &Plot| {
        let svg = plot.svg();
        let axis = svg.split("class=\"axis\"").nth(1).unwrap();
        let y = axis.split("y1=\"").nth(1).unwrap();
        y.split('"').next().unwrap().parse::<f64>().unwrap()
    };
    assert!((axis(&unnamed) - axis(&named) - (BOTTOM - BOTTOM_UNNAMED)).abs() < 1e-9);
    let svg = unnamed.svg();
    assert!(!svg.contains("></text>"), "{svg}");
    // Shaded stretches reach the axis.
    let height = HEIGHT - BOTTOM_UNNAMED - TOP;
    assert!(svg.contains(&format!("height=\"{height:.1}\"")), "{svg}");
}

#[test]
fn quantiles_and_powers_of_ten() {
    let points = [0.0, 0.5, 0.9, 0.99, 0.999]
        .map(|quantile| (quantile, Some(100.0 / (1.0 - quantile))))
        .to_vec();
    insta::assert_snapshot!(
        plot(points, Axis::Quantiles, Axis::Logarithmic(number))
            .svg()
            .replace('>', ">\n")
    );
}

#[test]
fn areas_lie_on_one_another() {
    let line = |label: &str, values: [Option<f64>; 5]| Line {
        label: label.to_owned(),
        points: (1..=5).map(f64::from).zip(values).collect(),
        is_dots: false,
    };
    let stack = Stack {
        title: "stack".to_owned(),
        x: Axis::Time(number),
        across: TIME,
        y: Axis::Linear(number),
        lines: vec![
            (
                2,
                line("below", [Some(1.0), Some(2.0), Some(1.0), None, Some(1.0)]),
            ),
            (
                5,
                line("above", [Some(3.0), None, Some(3.0), None, Some(1.0)]),
            ),
        ],
        shaded: Vec::new(),
    };
    assert!(!stack.is_empty());
    insta::assert_snapshot!(stack.html().replace('>', ">\n"));
}

#[test]
fn a_heat_map_has_a_path_for_each_level() {
    let cell = |second: f64, low: f64, count| Cell {
        x: (second - 1.0, second),
        y: (low, low * 2.0),
        count,
    };
    let heat = HeatMap {
        title: "heat".to_owned(),
        x: Axis::Time(number),
        y: Axis::Logarithmic(number),
        cells: vec![
            cell(1.0, 10.0, 1_000),
            cell(1.0, 20.0, 3),
            cell(2.0, 10.0, 1_000),
            cell(2.0, 200.0, 0),
        ],
        shaded: Vec::new(),
    };
    assert!(!heat.is_empty());
    insta::assert_snapshot!(heat.html().replace('>', ">\n"));
}

#[test]
fn whatever_is_drawn_stays_finite() {
    let odd = [0.0, -1.0, 1e-30, 1e300, f64::MAX, f64::NAN, f64::INFINITY];
    for x in [Axis::Time(number), Axis::Quantiles] {
        for y in [Axis::Linear(number), Axis::Logarithmic(number)] {
            for value in odd {
                for position in odd {
                    let points = vec![(position, Some(value)), (0.5, Some(1.0))];
                    let svg = plot(points, x.clone(), y.clone()).svg();
                    assert!(svg.len() < 20_000, "{position} {value}");
                }
            }
            assert!(plot(Vec::new(), x.clone(), y.clone()).is_empty());
        }
    }
}
